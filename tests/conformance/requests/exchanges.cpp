// Exchanges (alltoallv, alltoall and alltoallv with neighbors) in random schedules: blocking, posted, and in plans that
// are started again and again, several of a team under way beside each other, with other collectives between. All PEs
// draw the same neighborhoods; each has its list in an order of its own. A block's bytes say who sends it to whom, in
// which start. Nothing but the requests orders a start behind the one before, as in a halo exchange.
//
// HEDDLE_TEST_THREADS=N: N threads of each PE run schedules of their own at the same time, on teams of their own.
// HEDDLE_TEST_STEPS=N: how many exchanges a thread makes.
#include "check.h"

#include <shmemx.h>

#include <sched.h>
#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

using namespace conformance;

namespace {

constexpr size_t kSideBytes = 1 << 20;  // of dest, and of source
constexpr int kTogether = 3;            // exchanges under way at once
constexpr unsigned char kGap = 0xa5;

struct Block {
    int rank;
    size_t sent, expected;  // elements
    uint64_t out, in;       // which block this is, as both sides know it
};

// The k-th block from one member to another, in bytes of a start.
void fill(unsigned char* to, size_t bytes, uint64_t block, uint64_t start) {
    random_for(block, start, 7).fill(to, bytes);
}

// One exchange, as this PE has it.
class Exchange {
  public:
    enum Form { kAlltoallv, kNeighbors, kNeighborsV };

    // shared: alike on all members. own: this PE's order and places.
    Exchange(shmem_team_t team, unsigned char* memory, uint64_t number, Random& shared, Random& own)
        : team_(team), dest_(memory), source_(memory + kSideBytes) {
        const int me = shmem_team_my_pe(team), size = shmem_team_n_pes(team);
        form_ = static_cast<Form>(shared.below(3));
        const size_t sizes[] = {1, 2, 4, 8, 3};
        element_ = sizes[shared.below(5)];
        const size_t most = shared.below(8) != 0 ? 300 : size <= 4 ? 60000 : 20000;  // fits in kSideBytes
        const size_t block_bytes = shared.below(most);
        const bool crowded = shared.below(40) == 0;  // tables longer than a bounce buffer
        for (int one = 0; one < size; ++one)
            for (int other = one; other < size; ++other) {
                size_t times = form_ == kAlltoallv ? 1 : shared.below(4) == 0 ? 2 + shared.below(3) : shared.below(2);
                if (crowded && form_ == kNeighborsV && one == 0 && other == size - 1)
                    times = 700;
                const size_t shorter = times > 100 ? 40 : most;
                for (size_t k = 0; k < times; ++k) {
                    const auto draw = [&] { return shared.below(4) == 0 ? 0 : shared.below(shorter / element_ + 1); };
                    size_t there = draw(), back = one == other ? there : draw();
                    if (form_ == kNeighbors)
                        there = back = block_bytes;
                    const uint64_t id =
                        ((number * 100 + static_cast<uint64_t>(one)) * 100 + static_cast<uint64_t>(other)) * 1000 + k;
                    if (one == me)
                        blocks_.push_back({other, there, back, id * 2, one == other ? id * 2 : id * 2 + 1});
                    else if (other == me)
                        blocks_.push_back({one, back, there, id * 2 + 1, id * 2});
                }
            }
        if (form_ != kAlltoallv)
            shuffle(own);
        place(own);
    }

    void fill_source(uint64_t start) {
        start_ = start;
        for (size_t i = 0; i < blocks_.size(); ++i)
            fill(source_ + from_[i] * unit(), blocks_[i].sent * unit(), blocks_[i].out, start);
        for (size_t i = 0; i < blocks_.size(); ++i) memset(dest_ + to_[i] * unit(), kGap, blocks_[i].expected * unit());
    }

    // req null: blocking.
    void call(shmemx_request_t* req) const {
        const size_t n = ranks_.size();
        int status;
        if (form_ == kAlltoallv)
            status = req ? shmemx_alltoallv_nbe(team_, dest_, counts_in_.data(), to_.data(), source_,
                                                counts_out_.data(), from_.data(), element_, req)
                         : shmemx_alltoallv(team_, dest_, counts_in_.data(), to_.data(), source_, counts_out_.data(),
                                            from_.data(), element_);
        else if (form_ == kNeighbors)
            status = req ? shmemx_neighbor_alltoall_nbe(team_, ranks_.data(), n, dest_, source_, block(), req)
                         : shmemx_neighbor_alltoall(team_, ranks_.data(), n, dest_, source_, block());
        else
            status = req ? shmemx_neighbor_alltoallv_nbe(team_, ranks_.data(), n, dest_, counts_in_.data(), to_.data(),
                                                         source_, counts_out_.data(), from_.data(), element_, req)
                         : shmemx_neighbor_alltoallv(team_, ranks_.data(), n, dest_, counts_in_.data(), to_.data(),
                                                     source_, counts_out_.data(), from_.data(), element_);
        CHECK_EQ(status, 0);
    }
    // As call, but the lists that it passes are gone behind it.
    void post(shmemx_request_t* req) {
        const auto ranks = ranks_;
        const auto lists = std::vector<std::vector<size_t>>{counts_in_, to_, counts_out_, from_};
        call(req);
        std::fill(ranks_.begin(), ranks_.end(), -1);
        for (auto* list : {&counts_in_, &to_, &counts_out_, &from_}) std::fill(list->begin(), list->end(), SIZE_MAX);
        ranks_ = ranks;
        counts_in_ = lists[0], to_ = lists[1], counts_out_ = lists[2], from_ = lists[3];
    }

    void check() const {
        std::vector<unsigned char> expected(dest_bytes_, kGap);
        for (size_t i = 0; i < blocks_.size(); ++i)
            fill(expected.data() + to_[i] * unit(), blocks_[i].expected * unit(), blocks_[i].in, start_);
        CHECK_BYTES("dest", dest_, expected.data(), dest_bytes_);
    }

  private:
    size_t unit() const { return form_ == kNeighbors ? 1 : element_; }
    size_t block() const { return blocks_.empty() ? 0 : blocks_[0].sent; }

    // Blocks of one rank keep their order.
    void shuffle(Random& own) {
        std::vector<int> ranks;
        for (const Block& block : blocks_) ranks.push_back(block.rank);
        for (size_t i = ranks.size(); i > 1; --i) std::swap(ranks[i - 1], ranks[own.below(i)]);
        std::vector<Block> rest = blocks_, ordered;
        for (const int rank : ranks) {
            const auto next = std::find_if(rest.begin(), rest.end(), [&](const Block& b) { return b.rank == rank; });
            ordered.push_back(*next);
            rest.erase(next);
        }
        blocks_ = ordered;
    }

    // Where the blocks lie: in an order of their own, with gaps; of kNeighbors one behind the other.
    void place(Random& own) {
        const size_t n = blocks_.size();
        ranks_.resize(n), counts_in_.resize(n), to_.resize(n), counts_out_.resize(n), from_.resize(n);
        std::vector<size_t> order(n);
        for (size_t i = 0; i < n; ++i) order[i] = i;
        for (size_t i = n; form_ != kNeighbors && i > 1; --i) std::swap(order[i - 1], order[own.below(i)]);
        size_t to = 0, from = 0;
        const auto gap = [&]() -> size_t { return form_ == kNeighbors ? 0 : own.below(4); };
        for (const size_t i : order) {
            to += gap(), from += gap();
            ranks_[i] = blocks_[i].rank;
            counts_in_[i] = blocks_[i].expected, counts_out_[i] = blocks_[i].sent;
            to_[i] = to, from_[i] = from;
            to += blocks_[i].expected, from += blocks_[i].sent;
        }
        dest_bytes_ = (to + 5) * unit();
        CHECK(dest_bytes_ <= kSideBytes && from * unit() <= kSideBytes);
        memset(dest_, kGap, dest_bytes_);
    }

    shmem_team_t team_;
    unsigned char *dest_, *source_;
    Form form_;
    size_t element_, dest_bytes_ = 0;
    uint64_t start_ = 0;
    std::vector<Block> blocks_;
    std::vector<int> ranks_;
    std::vector<size_t> counts_in_, to_, counts_out_, from_;
};

void dawdle(Random& own) {
    const size_t choice = own.below(30);
    if (choice == 0)
        shmemx_progress();
    else if (choice < 4)
        sched_yield();
}

class Schedule {
  public:
    Schedule(std::vector<shmem_team_t> teams, unsigned char* memory, uint64_t number)
        : teams_(std::move(teams)), memory_(memory), number_(number) {
        CHECK_EQ(shmemx_request_allocate(&shared_request_, SHMEMX_REQUEST_SHARED), 0);
    }

    void run(uint64_t steps) {
        for (uint64_t step = 0; step < steps; ++step) round(step);
        shmemx_request_free(&shared_request_);
        CHECK(shared_request_ == SHMEMX_REQUEST_NULL);
    }

  private:
    // kTogether exchanges on one team, started some times, each by an own plan, by one plan of all, or by their calls.
    void round(uint64_t step) {
        Random shared = random_for(number_, step, 1), own = random_for(number_, step, 100 + static_cast<uint64_t>(pe));
        const shmem_team_t team = teams_[shared.below(teams_.size())];
        Random of_team = random_for(number_, step, 2);
        if (team == SHMEM_TEAM_INVALID)
            return;
        enum { kBlocking, kPosted, kPlans, kOnePlan } way = {};
        way = static_cast<decltype(way)>(of_team.below(4));
        const size_t count = 1 + of_team.below(kTogether), starts = 1 + of_team.below(6);
        const bool with_sum = of_team.below(3) == 0;
        std::vector<Exchange> exchanges;
        for (size_t i = 0; i < count; ++i)
            exchanges.emplace_back(team, memory_ + i * 2 * kSideBytes, number_ * 1000 + step * 10 + i, of_team, own);
        auto* const sums = reinterpret_cast<uint64_t*>(memory_ + kTogether * 2 * kSideBytes);
        std::vector<shmemx_plan_t> plans(way == kPlans ? count : way == kOnePlan ? 1 : 0, SHMEMX_PLAN_NULL);
        shmemx_request_t unused = SHMEMX_REQUEST_NULL;
        for (size_t i = 0; i < plans.size(); ++i) {
            shmemx_plan_begin(&plans[i]);
            for (size_t k = 0; k < count; ++k)
                if (way == kOnePlan || k == i)
                    exchanges[k].post(&unused);
            if (i == 0 && with_sum)
                CHECK_EQ(shmemx_uint64_sum_reduce_nbe(team, &sums[0], &sums[1], 1, &unused), 0);
            shmemx_plan_end(&plans[i]);
            CHECK(unused == SHMEMX_REQUEST_NULL && plans[i] != SHMEMX_PLAN_NULL);
        }
        for (size_t start = 0; start < starts; ++start) {
            for (Exchange& exchange : exchanges) exchange.fill_source(start);
            sums[1] = start + static_cast<uint64_t>(shmem_team_my_pe(team));
            shmemx_request_t own_request = SHMEMX_REQUEST_NULL;
            shmemx_request_t* const request = own.below(2) ? &own_request : &shared_request_;
            if (with_sum && !plans.empty())
                shmem_team_sync(team);  // the sum's dest is ready on all members
            dawdle(own);
            for (size_t i = 0; i < (plans.empty() ? count : plans.size()); ++i)
                if (way == kBlocking)
                    exchanges[i].call(nullptr);
                else if (way == kPosted)
                    exchanges[i].post(request);
                else
                    CHECK_EQ(shmemx_request_start(plans[i], request), 0);
            dawdle(own);
            if (own.below(2))
                shmemx_request_wait(request);
            else
                while (!shmemx_request_test(request)) sched_yield();
            for (const Exchange& exchange : exchanges) exchange.check();
            const auto n = static_cast<uint64_t>(shmem_team_n_pes(team));
            if (with_sum && !plans.empty())
                CHECK_EQ(sums[0], n * start + n * (n - 1) / 2);
        }
        for (shmemx_plan_t& plan : plans) {
            shmemx_plan_free(&plan);
            CHECK(plan == SHMEMX_PLAN_NULL);
        }
    }

    std::vector<shmem_team_t> teams_;
    unsigned char* memory_;
    uint64_t number_;
    shmemx_request_t shared_request_ = SHMEMX_REQUEST_NULL;
};

// The world, its odd and even PEs, and a team of one.
std::vector<shmem_team_t> make_teams() {
    std::vector<shmem_team_t> teams(4, SHMEM_TEAM_INVALID);
    CHECK_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n_pes, nullptr, 0, &teams[0]), 0);
    CHECK_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, (n_pes + 1) / 2, nullptr, 0, &teams[1]), 0);
    if (n_pes > 1)
        CHECK_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, 1, 2, n_pes / 2, nullptr, 0, &teams[2]), 0);
    CHECK_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, n_pes - 1, 1, 1, nullptr, 0, &teams[3]), 0);
    return teams;
}

}  // namespace

int main() {
    start("exchanges");
    subject = "exchanges";
    const uint64_t n_threads = number("HEDDLE_TEST_THREADS", 1), steps = number("HEDDLE_TEST_STEPS", 1000 / n_threads);
    std::vector<Schedule> schedules;
    for (uint64_t i = 0; i < n_threads; ++i) {
        auto* const memory = static_cast<unsigned char*>(shmem_malloc(kTogether * 2 * kSideBytes + 64));
        CHECK(memory);
        schedules.emplace_back(make_teams(), memory, i);
    }
    std::vector<std::thread> threads;
    for (uint64_t i = 1; i < n_threads; ++i)
        threads.emplace_back([&, i] {
            subject = "exchanges";
            schedules[i].run(steps);
        });
    schedules[0].run(steps);
    for (std::thread& thread : threads) thread.join();
    return finish();
}
