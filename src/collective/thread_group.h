// Thread group: the threads of one PE that carry out a collective together, each with its number. They synchronize
// through their team's ThreadGroupState; one of them goes through the team's steps for all.
#pragma once

#include "base/tsan.h"
#include "progress/wait_policy.h"
#include "team/team.h"

#include <cstddef>

namespace heddle::collective {

class ThreadGroup {
  public:
    // Ends the PE unless 0 <= thread < threads.
    ThreadGroup(const base::Call& call, team::Team& team, int thread, int threads)
        : call_(call), team_(team), thread_(thread), threads_(threads) {
        if (threads != 1 || thread != 0)
            require_number(call, thread, threads);
    }

    // Ends the PE unless 0 <= thread < threads.
    static void require_number(const base::Call& call, int thread, int threads);

    int size() const { return threads_; }
    int thread() const { return thread_; }

    // Waits for all threads; the last to arrive runs work, and all continue when work is done. work sees what each
    // thread wrote before, and all threads then see what work wrote.
    template <class Work>
    void by_one(Work work) const {
        if (threads_ == 1)
            return work();
        by_the_last(work);
    }

    // Returns when all threads have called.
    void gather() const {
        by_one([] {});
    }

    // Gathers; returns the object of thread 0 to all. The object lives until the threads have gathered again.
    template <class Object>
    Object& of_first(Object& mine) const {
        if (threads_ == 1)
            return mine;
        if (thread_ == 0)
            state().of_first = &mine;
        gather();
        return *static_cast<Object*>(state().of_first);
    }

    static constexpr size_t kLineBytes = 64;  // of the caches of all CPUs that Heddle knows; two threads share no line

    // This thread's share of [0, count), in whole units.
    struct Share {
        size_t begin, end;
        size_t size() const { return end - begin; }
    };
    Share share_of(size_t count, size_t unit) const { return share_of(count, unit, threads_); }
    // The share where the first `sharers` threads share; empty for the others.
    Share share_of(size_t count, size_t unit, int sharers) const {
        return threads_ == 1 ? Share{0, count} : one_of_many(count, unit, sharers);
    }

  private:
    // by_one with several threads. Out of line: the collectives of one thread stay as short as without thread groups.
    template <class Work>
    __attribute__((noinline)) void by_the_last(Work work) const {
        sync::CentralBarrier& central_barrier = state().central_barrier;
        // Relaxed: the count cannot advance before this thread has arrived, and this thread has seen its last advance.
        const uint32_t next = central_barrier.released.value.load(std::memory_order_relaxed) + 1;
        check();
        tsan::release(&central_barrier);
        const bool was_last = central_barrier.arrive_and(static_cast<uint32_t>(threads_), next, [&] {
            forget();
            tsan::acquire(&central_barrier);
            work();
            tsan::release(&central_barrier);
        });
        if (was_last) {
            if (progress::Fiber::current())  // shares of what is posted, for threads that wait for its request
                progress::wait_policy->parking_lot.call_to_work(static_cast<uint32_t>(threads_) - 1);
            return;
        }
        progress::wait_for_event_count(call_.function, central_barrier.released, next);
        tsan::acquire(&central_barrier);
    }

    // Where the threads meet; of several alone. Shares that are under way in an instance of the team have a state of
    // their own: threads of this PE may be in the next blocking collective.
    team::ThreadGroupState& state() const;
    Share one_of_many(size_t count, size_t unit, int sharers) const;
    // In a checked run: ends the PE when threads disagree on the function or their number, or two threads have one
    // number.
    void check() const;
    base::Call another() const;
    void forget() const;

    const base::Call& call_;
    team::Team& team_;
    const int thread_, threads_;
};

}  // namespace heddle::collective
