// Thread group: the threads of one PE that carry out a collective together, `threads` of them, each with its number.
// They meet in their team's ThreadGroupState; one of them goes through the team's steps for all.
#pragma once

#include "base/tsan.h"
#include "progress/wait_policy.h"
#include "team/team.h"

#include <cstddef>

namespace heddle::collective {

class ThreadGroup {
  public:
    // Ends the PE when thread is not 0 to threads - 1.
    ThreadGroup(const base::Call& call, team::ThreadGroupState& segment, int thread, int threads)
        : call_(call), segment_(segment), thread_(thread), threads_(threads) {
        if (threads != 1 || thread != 0)
            check_number();
    }

    int size() const { return threads_; }
    int thread() const { return thread_; }

    // All threads come; one of them does the work, and all go on when it is done. What each wrote before is seen by the
    // work, and what the work wrote by all.
    template <class Work>
    void by_one(Work work) const {
        if (threads_ == 1)
            return work();
        by_the_last(work);
    }

    // All threads come before any goes on.
    void gather() const {
        by_one([] {});
    }

    static constexpr size_t kLineBytes = 64;  // of the caches of all CPUs that Heddle knows; two threads share no line

    // This thread's share of [0, count), in whole units.
    struct Share {
        size_t begin, end;
        size_t size() const { return end - begin; }
    };
    Share share_of(size_t count, size_t unit) const {
        return threads_ == 1 ? Share{0, count} : one_of_many(count, unit);
    }

  private:
    // by_one with several threads; out of line, so that the collectives of one thread are as short as without thread
    // groups.
    template <class Work>
    __attribute__((noinline)) void by_the_last(Work work) const {
        sync::CentralBarrier& central_barrier = segment_.central_barrier;
        // Relaxed: the event count cannot move before this thread has come, and it has passed the last one.
        const uint32_t next = central_barrier.released.value.load(std::memory_order_relaxed) + 1;
        check();
        tsan::release(&central_barrier);
        // acq_rel: the last to come sees what all others wrote before.
        if (central_barrier.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 < static_cast<uint32_t>(threads_)) {
            progress::wait_for_event_count(call_.function, central_barrier.released, next);
            return tsan::acquire(&central_barrier);
        }
        forget();
        tsan::acquire(&central_barrier);
        work();
        tsan::release(&central_barrier);
        central_barrier.arrived.store(0, std::memory_order_relaxed);  // nobody comes again before the event count opens
        central_barrier.released.advance_to(next);
    }

    Share one_of_many(size_t count, size_t unit) const;
    void check_number() const;
    // In a checked run: ends the PE when threads disagree on what they are in or how many they are, or two have one
    // number.
    void check() const;
    base::Call another() const;
    void forget() const;

    const base::Call& call_;
    team::ThreadGroupState& segment_;
    const int thread_, threads_;
};

}  // namespace heddle::collective
