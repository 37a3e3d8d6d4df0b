// Long random sequences of collectives, every function, on teams of all kinds, one behind the other with nothing in
// between but what the specification asks for: dest is ready on all members before, source is written anew right
// behind. Each operation of a round has a dest of its own in an arena that all prepare together; what it becomes is
// looked at behind the operation, or only at the round's end, when nothing may have changed any more. PEs dawdle at
// random.
//
// HEDDLE_TEST_THREADS=N: N threads of each PE run sequences of their own at the same time, on teams of their own.
// HEDDLE_TEST_OPERATIONS=N: how many collectives a thread runs (default 4000, fewer with more PEs).
#include "collectives.h"

#include <pthread.h>
#include <sched.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>

using namespace conformance;

namespace {

constexpr size_t kMargin = 64;

struct Arena {
    unsigned char* memory;
    size_t bytes;
};

// One collective as all of its members see it.
struct Step {
    const move_row* move_fn = nullptr;  // or
    const reduce_row* reduce_fn = nullptr;
    Move move;
    uint64_t stream;
    size_t nelems = 0;
    bool in_place = false;
    const Group* group;
    unsigned char* dest = nullptr;
    size_t dest_bytes = 0;
    bool seen = false;  // this PE took part

    std::vector<unsigned char> expected() const {
        std::vector<unsigned char> bytes(dest_bytes + 8, Buffer::kFresh);
        if (move_fn)
            move.expect(group->rank, group->size, bytes.data());
        else
            expect_reduction(reduce_fn->info, reduce_fn->op, stream, group->rank, group->size, nelems, bytes.data());
        return bytes;
    }
    void check(const char* when) const {
        const std::vector<unsigned char> right = expected();
        subject = move_fn ? move_fn->info.name : reduce_fn->info.name;
        if (move_fn)
            CHECK_BYTES(when, dest, right.data(), dest_bytes);
        else
            CHECK_VALUES(reduce_fn->info, when, dest, right.data(), nelems);
    }
};

class Sequence {
  public:
    Sequence(std::vector<Group> groups, Arena dests, Arena sources, uint64_t number)
        : groups_(std::move(groups)),
          dests_(dests),
          sources_(sources),
          shared_(random_for(number, 1)),
          own_(random_for(number, 2, static_cast<uint64_t>(pe))) {
        // All PEs draw alike, so all know the same groups: not that of the own node where there are several.
        std::erase_if(groups_,
                      [](const Group& group) { return group.team == SHMEM_TEAM_SHARED && group.size != n_pes; });
    }

    void run(uint64_t operations) {
        for (uint64_t done = 0; done < operations;) done += round();
    }
    const std::vector<Group>& groups() const { return groups_; }

  private:
    static constexpr uint64_t kMostSteps = 300;  // of a round

    // So many steps of a burst are left; every period-th is an operation in which all meet.
    struct Burst {
        uint64_t left = 0, period = 1;
        const Group* group = nullptr;
        int root = 0;
        bool scans = false;
        bool others_tell = false;  // now and then

        bool meets() const { return left % period == 0; }
    };

    template <class Row, class Op>
    const Row* random_row(const Row* rows, size_t count, Op op) {
        for (;;) {
            const Row& row = rows[shared_.below(count)];
            if (row.op == op && row.info.bytes <= 16)
                return &row;
        }
    }

    // A short operation of the burst: notes carry it.
    Step draw_of_burst() {
        Step step;
        step.group = burst_.group;
        step.stream = shared_.next();
        if (burst_.meets() || !burst_.scans) {
            const move_op op = burst_.meets() ? MOVE_FCOLLECT : MOVE_BROADCAST;
            step.move_fn = random_row(move_rows, move_rows_count, op);
            step.move.op = op;
            step.move.element_bytes = step.move_fn->info.bytes;
            step.move.nelems = 1 + shared_.below(3);
            step.move.root = burst_.others_tell && shared_.below(16) == 0 ? 0 : burst_.root;
            step.move.stream = step.stream;
            step.dest_bytes = step.move.dest_bytes(step.group->size);
        } else {
            step.reduce_fn = random_row(reduce_rows, reduce_rows_count, REDUCE_EXSCAN);
            step.nelems = 1 + shared_.below(3);
            step.dest_bytes = step.nelems * step.reduce_fn->info.bytes;
        }
        return step;
    }

    // The next step, as all PEs draw it: kinds come in runs of one function on one team, and alone.
    Step draw(const Step* last) {
        if (burst_.left > 0) {
            --burst_.left;
            return draw_of_burst();
        }
        if (shared_.below(60) == 0) {
            burst_.left = 150;
            burst_.period = 26 + shared_.below(10);
            burst_.group = &groups_[shared_.below(2) ? 0 : shared_.below(groups_.size())];
            burst_.root = static_cast<int>(shared_.below(static_cast<size_t>(burst_.group->size)));
            burst_.scans = shared_.below(3) == 0;
            burst_.others_tell = shared_.below(2) == 0;
        }
        Step step;
        if (last && shared_.below(3) != 0) {
            step = *last;
        } else if (shared_.below(2)) {
            step.move_fn = &move_rows[shared_.below(move_rows_count)];
        } else {
            step.reduce_fn = &reduce_rows[shared_.below(reduce_rows_count)];
        }
        if (!last || shared_.below(4) == 0)
            step.group = &groups_[shared_.below(groups_.size())];
        else
            step.group = last->group;
        const int size = step.group->size;
        // Short ones most of the time: their protocols are what steps on each other's feet.
        const size_t most = shared_.below(4) ? 300 : shared_.below(8) ? 5000 : dests_.bytes / 4;
        step.stream = shared_.next();
        if (step.move_fn) {
            const size_t element = step.move_fn->info.bytes;
            const int root = step.move.root;
            const bool same_root =
                last && last->move_fn == step.move_fn && last->group == step.group && shared_.below(4);
            step.move = random_move(step.move_fn->op, element, size, std::max(most, element * 40), shared_,
                                    shared_.below(8) == 0);
            if (same_root)
                step.move.root = root;  // one root tells and tells
            step.dest_bytes = step.move.dest_bytes(size);
            step.in_place = step.move_fn->op == MOVE_BROADCAST && shared_.below(5) == 0;
        } else {
            const size_t element = step.reduce_fn->info.bytes;
            step.nelems = random_reduce_count(element, std::max(most, element * 2), shared_, shared_.below(8) == 0);
            step.dest_bytes = step.nelems * element;
            step.in_place = shared_.below(3) == 0;
        }
        return step;
    }

    static void nap_us(size_t us) {
        const timespec time = {0, static_cast<long>(us) * 1000};
        nanosleep(&time, nullptr);
    }

    void dawdle() {
        const size_t choice = own_.below(64);
        // The root comes last to a meeting, and is ahead of the others behind it; some fall back further.
        if (burst_.left > 0 && burst_.group->rank == burst_.root) {
            if (burst_.meets())
                nap_us(own_.below(300));
            return;
        }
        if (choice == 0) {
            nap_us(own_.below(burst_.left > 0 ? 1000 : 200));
        } else if (choice < 6) {
            sched_yield();
        }
    }

    // What this PE puts in, in one of two places, the same on all; one of the operations just before has used it.
    unsigned char* fill(const Step& step) {
        const Group& group = *step.group;
        unsigned char* const source = sources_.memory + (turn_ % 2) * (sources_.bytes / 2);
        unsigned char* const to = step.in_place ? step.dest : source;
        if (step.move_fn && step.in_place && group.rank != step.move.root)
            return to;  // dest already: not mine to write
        if (step.move_fn)
            step.move.fill_source(group.rank, group.size, to);
        else
            fill_values(step.reduce_fn->info, step.stream, group.rank, group.size, step.nelems, to);
        return to;
    }

    void perform(Step& step) {
        const Group& group = *step.group;
        step.seen = group.member();
        ++turn_;
        if (!step.seen)
            return;
        dawdle();
        const unsigned char* const source = fill(step);
        subject = step.move_fn ? step.move_fn->info.name : step.reduce_fn->info.name;
        if (step.move_fn)
            CHECK_EQ(step.move_fn->call(group.team, step.dest, source, step.move.dst, step.move.sst,
                                        step.move.nelems_of(group.rank), step.move.root),
                     0);
        else
            CHECK_EQ(step.reduce_fn->call(group.team, step.dest, source, step.nelems), 0);
        if (own_.below(2))
            step.check("dest behind the operation");
        if (own_.below(4) == 0)  // source is mine again, and so is what I last put in
            memset(const_cast<unsigned char*>(source), 0x11, step.in_place ? 0 : 64);
    }

    uint64_t round() {
        memset(dests_.memory, Buffer::kFresh, dests_.bytes);
        shmem_team_sync(groups_[0].team);  // all dests are ready
        std::vector<Step> steps;
        size_t used = kMargin;
        while (steps.size() < kMostSteps) {
            Step step = draw(steps.empty() ? nullptr : &steps.back());
            used = (used + 15) / 16 * 16;
            if (used + step.dest_bytes + 2 * kMargin > dests_.bytes)
                break;
            step.dest = dests_.memory + used;
            used += step.dest_bytes + kMargin;
            perform(step);
            steps.push_back(step);
        }
        shmem_team_sync(groups_[0].team);  // nobody is in an operation any more
        size_t checked = 0;
        for (const Step& step : steps) {
            const auto at = static_cast<size_t>(step.dest - dests_.memory);
            CHECK_UNTOUCHED("between dests", dests_.memory + checked, Buffer::kFresh, at - checked);
            if (step.seen)
                step.check("dest at the end");
            else
                CHECK_UNTOUCHED("dest of others", step.dest, Buffer::kFresh, step.dest_bytes);
            checked = at + step.dest_bytes;
        }
        CHECK_UNTOUCHED("behind the last dest", dests_.memory + checked, Buffer::kFresh, dests_.bytes - checked);
        return steps.size();
    }

    std::vector<Group> groups_;
    Arena dests_, sources_;
    Random shared_, own_;
    Burst burst_;
    uint64_t turn_ = 0;
};

uint64_t operations;

void* run(void* sequence) {
    static_cast<Sequence*>(sequence)->run(operations);
    return nullptr;
}

}  // namespace

int main() {
    start("sequences");
    const uint64_t threads = number("HEDDLE_TEST_THREADS", 1);
    operations = number("HEDDLE_TEST_OPERATIONS", n_pes > 8 ? 800 : 4000) / threads;
    constexpr size_t kDestBytes = 256 << 10, kSourceBytes = 512 << 10;
    std::vector<Sequence> sequences;
    for (uint64_t i = 0; i < threads; ++i) {
        const Arena dests = {static_cast<unsigned char*>(shmem_malloc(kDestBytes)), kDestBytes};
        const Arena sources = {static_cast<unsigned char*>(shmem_malloc(kSourceBytes)), kSourceBytes};
        CHECK(dests.memory && sources.memory);
        sequences.emplace_back(make_groups_of_thread(i), dests, sources, i);
    }
    std::vector<pthread_t> handles(threads - 1);
    for (uint64_t i = 1; i < threads; ++i) CHECK_EQ(pthread_create(&handles[i - 1], nullptr, run, &sequences[i]), 0);
    run(sequences.data());
    for (pthread_t handle : handles) pthread_join(handle, nullptr);
    shmem_barrier_all();
    for (Sequence& sequence : sequences) {
        std::vector<Group> groups = sequence.groups();
        destroy_groups(groups);
    }
    return finish();
}
