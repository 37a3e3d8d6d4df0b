// Collectives that the threads of a PE post together, many at once and of several teams. The threads of a PE, as many
// as each PE draws, come at different times: one has posted all, and waits, before another posts the first. They post
// to one SHARED request, or to two in turns, beside a put of each thread. Behind them come one that thread 0 posts
// alone, and blocking ones: of one thread, and of all.
//
// HEDDLE_TEST_ROUNDS=N: rounds, 6 where it does not say.
#include "check.h"
#include "collectives.h"

#include <shmemx.h>

#include <sched.h>
#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

using namespace conformance;

namespace {

constexpr size_t kMost = 40009;  // doubles of a member: shares of no round size
constexpr size_t kCounts[] = {0, 1, 29, 255, 2049, 9001, kMost};
constexpr size_t kArena = size_t{24} << 20;

enum Kind {
    kSum,
    kProduct,
    kMaximum,
    kInscan,
    kExscan,
    kBroadcast,
    kCollect,
    kFcollect,
    kAlltoall,
    kAlltoalls,
    kSync,
    kBarrier,
    kKinds
};

struct Posted {
    Kind kind;
    const Group* group;
    size_t nelems;  // of one member; of collect: of members of even rank
    int root;
    double number;
    double *source, *dest;

    size_t blocks() const { return kind == kAlltoall || kind == kAlltoalls ? static_cast<size_t>(group->size) : 1; }
    size_t mine(int rank) const { return kind == kCollect && rank % 2 ? nelems / 3 : nelems; }
    size_t source_size() const { return nelems * blocks() * (kind == kAlltoalls ? 2 : 1); }
    size_t dest_size() const {
        const auto size = static_cast<size_t>(group->size);
        return kind == kCollect || kind == kFcollect || blocks() > 1 ? nelems * size : nelems;
    }
    // What member `rank` gives. Small whole numbers: sums are exact.
    double given(int rank, size_t i) const {
        return kind == kProduct ? 1 + (rank + static_cast<int>(i)) % 2
                                : rank * 1000 + number + static_cast<double>(i % 97);
    }
    void fill() const {
        for (size_t i = 0; i < source_size(); ++i) source[i] = given(group->rank, i);
        std::fill_n(dest, dest_size() + 1, -5.0);
    }
    double combined(size_t i, int last) const {
        double result = kind == kExscan || kind == kInscan ? 0 : given(0, i);
        if (kind == kExscan || kind == kInscan) {
            for (int rank = 0; rank <= last; ++rank) result += given(rank, i);
            return result;
        }
        for (int rank = 1; rank < group->size; ++rank)
            result = kind == kSum       ? result + given(rank, i)
                     : kind == kProduct ? result * given(rank, i)
                                        : std::max(result, given(rank, i));
        return result;
    }
    void check() const;
    int post(int thread, int threads, shmemx_request_t* req) const;
};

void Posted::check() const {
    if (kind == kSync || kind == kBarrier)
        return;
    const int me = group->rank;
    size_t at = 0;
    if (kind <= kExscan) {
        for (; at < nelems; ++at) CHECK_EQ(dest[at], combined(at, kind == kExscan ? me - 1 : me));
    } else if (kind == kBroadcast) {
        for (; at < nelems; ++at) CHECK_EQ(dest[at], given(root, at));
    } else {
        for (int rank = 0; rank < group->size; ++rank)
            for (size_t i = 0; i < mine(rank); ++i) {
                const size_t from = blocks() > 1 ? static_cast<size_t>(me) * nelems + i : i;
                CHECK_EQ(dest[at], given(rank, kind == kAlltoalls ? 2 * from : from));
                ++at;
            }
    }
    CHECK_EQ(dest[at], -5.0);
}

int Posted::post(int thread, int threads, shmemx_request_t* req) const {
    const shmem_team_t team = group->team;
    switch (kind) {
        case kSum:
            return shmemx_double_sum_reduce_mt_nbe(team, dest, source, nelems, thread, threads, req);
        case kProduct:
            return shmemx_double_prod_reduce_mt_nbe(team, dest, source, nelems, thread, threads, req);
        case kMaximum:
            return shmemx_double_max_reduce_mt_nbe(team, dest, source, nelems, thread, threads, req);
        case kInscan:
            return shmemx_double_sum_inscan_mt_nbe(team, dest, source, nelems, thread, threads, req);
        case kExscan:
            return shmemx_double_sum_exscan_mt_nbe(team, dest, source, nelems, thread, threads, req);
        case kBroadcast:
            return shmemx_double_broadcast_mt_nbe(team, dest, source, nelems, root, thread, threads, req);
        case kCollect:
            return shmemx_double_collect_mt_nbe(team, dest, source, mine(group->rank), thread, threads, req);
        case kFcollect:
            return shmemx_double_fcollect_mt_nbe(team, dest, source, nelems, thread, threads, req);
        case kAlltoall:
            return shmemx_double_alltoall_mt_nbe(team, dest, source, nelems, thread, threads, req);
        case kAlltoalls:
            return shmemx_double_alltoalls_mt_nbe(team, dest, source, 1, 2, nelems, thread, threads, req);
        case kSync:
            return shmemx_team_sync_mt_nbe(team, thread, threads, req);
        default:
            return shmemx_team_barrier_mt_nbe(team, thread, threads, req);
    }
}

double* arena;
std::vector<Group> groups;
constexpr int kThreads = 4;
double* written;  // by the threads of the PE before: of each, in each round

std::vector<Posted> draw(Random& shared, uint64_t round) {
    std::vector<Posted> posts;
    size_t used = 0;
    const auto members = static_cast<size_t>(n_pes);
    for (int number = 0; number < 24; ++number) {
        Posted post = {};
        post.kind = static_cast<Kind>(shared.below(kKinds));
        post.group = &groups[shared.below(groups.size())];
        post.nelems = kCounts[shared.below(std::size(kCounts))];
        if (post.kind >= kCollect && post.kind <= kAlltoalls)
            post.nelems /= std::max<size_t>(1, members / 2);
        post.root = static_cast<int>(shared.below(static_cast<uint64_t>(post.group->size)));
        post.number = static_cast<double>(round * 100) + number;
        const size_t source = 2 * post.nelems * members + 8, dest = post.nelems * members + 8;
        if (post.group->team == SHMEM_TEAM_SHARED || (used + source + dest) * sizeof(double) > kArena)
            continue;
        post.source = arena + used;
        post.dest = post.source + source;
        used += source + dest;
        posts.push_back(post);
    }
    return posts;
}

// What a thread does in a round.
void run_thread(const std::vector<Posted>& posts, shmemx_request_t* requests, int thread, int threads, uint64_t round) {
    subject = "a thread that posts";
    Random own = random_for(round, static_cast<uint64_t>(pe), static_cast<uint64_t>(thread));
    const bool is_late = own.below(3) == 0;
    if (is_late)
        for (uint64_t i = own.below(400); i > 0; --i) sched_yield();
    static thread_local double value;
    value = static_cast<double>(round) + 1;
    shmemx_double_put_nbe(&written[thread], &value, 1, (pe + 1) % n_pes, &requests[0]);
    for (size_t i = 0; i < posts.size(); ++i) {
        if (!posts[i].group->member())
            continue;
        CHECK_EQ(posts[i].post(thread, threads, &requests[i % 2]), 0);
        if (own.below(8) == 0)
            shmemx_progress();
        if (own.below(12) == 0)  // also for what others have not posted
            shmemx_request_wait(&requests[0]);
    }
    if (own.below(2)) {
        shmemx_request_wait(&requests[0]);
        while (!shmemx_request_test(&requests[1])) sched_yield();
        for (const Posted& post : posts)
            if (post.group->member())
                post.check();
    }
}

void run_round(uint64_t round) {
    Random shared = random_for(round, 77), own = random_for(round, static_cast<uint64_t>(pe), 78);
    const std::vector<Posted> posts = draw(shared, round);
    for (const Posted& post : posts)
        if (post.group->member())
            post.fill();
    const int threads = static_cast<int>(1 + own.below(kThreads));
    shmemx_request_t requests[2];
    for (shmemx_request_t& request : requests) CHECK_EQ(shmemx_request_allocate(&request, SHMEMX_REQUEST_SHARED), 0);
    shmem_barrier_all();
    static double sum, one, all, most;
    one = 1, most = pe;
    std::vector<std::thread> others;
    const auto body = [&](int thread) {
        run_thread(posts, requests, thread, threads, round);
        if (thread == 0)  // behind all that this thread has posted
            CHECK_EQ(shmemx_double_sum_reduce_nbe(SHMEM_TEAM_WORLD, &sum, &one, 1, &requests[1]), 0);
    };
    for (int thread = 1; thread < threads; ++thread) others.emplace_back(body, thread);
    body(0);
    const bool calls_before_all_posted = round % 2;
    if (calls_before_all_posted)  // waits for all that were posted, and so for threads that have not posted yet
        CHECK_EQ(shmem_double_max_reduce(SHMEM_TEAM_WORLD, &all, &most, 1), 0);
    for (std::thread& other : others) other.join();
    others.clear();
    if (!calls_before_all_posted) {
        const auto blocking = [&](int thread) {
            CHECK_EQ(shmemx_double_max_reduce_mt(SHMEM_TEAM_WORLD, &all, &most, 1, thread, threads), 0);
        };
        for (int thread = 1; thread < threads; ++thread) others.emplace_back(blocking, thread);
        blocking(0);
        for (std::thread& other : others) other.join();
    }
    for (shmemx_request_t& request : requests) {
        shmemx_request_wait(&request);
        shmemx_request_free(&request);
    }
    CHECK_EQ(sum, n_pes);
    CHECK_EQ(all, n_pes - 1);
    for (const Posted& post : posts)
        if (post.group->member())
            post.check();
    shmem_barrier_all();
    CHECK_EQ(written[0], static_cast<double>(round) + 1);
}

// Two threads, of which one waits alone for what both have posted: it carries out all shares.
void one_drives_all() {
    subject = "one thread that waits";
    const Group world = world_group();
    for (const size_t nelems : {size_t{9001}, kMost}) {
        const Posted post = {kSum, &world, nelems, 0, 3, arena, arena + kMost + 8};
        post.fill();
        shmem_barrier_all();
        shmemx_request_t request;
        CHECK_EQ(shmemx_request_allocate(&request, SHMEMX_REQUEST_SHARED), 0);
        for (int thread = 0; thread < 2; ++thread) std::thread([&] { post.post(thread, 2, &request); }).join();
        shmemx_request_wait(&request);
        post.check();
        shmemx_request_free(&request);
        shmem_barrier_all();
    }
}

}  // namespace

int main() {
    start("posted_groups");
    arena = static_cast<double*>(shmem_align(64, kArena));
    written = static_cast<double*>(shmem_calloc(kThreads, sizeof *written));
    CHECK(arena && written);
    groups = make_groups();
    one_drives_all();
    const size_t rounds = number("HEDDLE_TEST_ROUNDS", 6);
    for (uint64_t round = 0; round < rounds; ++round) run_round(round);
    destroy_groups(groups);
    return finish();
}
