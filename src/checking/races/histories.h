// Histories: the last states of knowledge of each PE, in shared memory. A flag carries its writer's time alone; the
// PE that sees the flag finds here what its writer knew then. A state that has left the history is replaced by a later
// one, which knows more: that hides races, and invents none. Threads: any; a lock for each PE.
#pragma once

#include "checking/races/knowledge.h"
#include "checking/races/shared_lock.h"

#include <algorithm>
#include <atomic>
#include <mutex>

namespace heddle::checking::races {

class Histories {
  public:
    static constexpr uint64_t kStates = 64;  // of each PE

    Histories(char* memory, int n_pes) : memory_(memory), n_pes_(n_pes) {}
    static size_t bytes(int n_pes) { return static_cast<size_t>(n_pes) * pe_bytes(n_pes); }

    // The PE's last operation.
    void advance(int pe, Time now) { head(pe).now.store(now, std::memory_order_relaxed); }
    Time now(int pe) { return head(pe).now.load(std::memory_order_relaxed); }

    // The PE's last operation before all PEs met in its last finalize; 0: it has not called that.
    void end(int pe, Time now) { head(pe).ended.store(now, std::memory_order_relaxed); }
    Time ended(int pe) { return head(pe).ended.load(std::memory_order_relaxed); }

    // The state that holds from `since` on.
    void publish(Time since, const Knowledge& known) {
        const Clock clock = known.published();
        Head& mine = head(known.pe);
        const std::lock_guard locked(mine.lock);
        Time* const state = state_of(mine, mine.published++);
        state[0] = since;
        std::copy(known.fenced.begin(), known.fenced.end(), state + 1);
        std::copy(clock.words(), clock.words() + clock.size(), state + 1 + kFlows);
    }

    // Calls use(fenced, words of the clock) with the state of `pe` at that time; not at all before its first state.
    template <class Use>
    void look(int pe, Time at, Use use) {
        Head& theirs = head(pe);
        const std::lock_guard locked(theirs.lock);
        const uint64_t end = theirs.published;
        if (end == 0)
            return;
        uint64_t i = end - 1;
        for (const uint64_t begin = end > kStates ? end - kStates : 0; i > begin && state_of(theirs, i)[0] > at;) --i;
        const Time* const state = state_of(theirs, i);
        use(state + 1, state + 1 + kFlows);
    }

  private:
    struct Head {
        std::atomic<Time> now, ended;
        SharedLock lock;
        uint64_t published;
    };
    static size_t state_words(int n_pes) { return 1 + kFlows + clock_words(n_pes); }
    static size_t pe_bytes(int n_pes) {
        return (sizeof(Head) + kStates * state_words(n_pes) * sizeof(Time) + 63) / 64 * 64;
    }
    Head& head(int pe) { return *reinterpret_cast<Head*>(memory_ + static_cast<size_t>(pe) * pe_bytes(n_pes_)); }
    Time* state_of(Head& of, uint64_t number) const {
        return reinterpret_cast<Time*>(&of + 1) + number % kStates * state_words(n_pes_);
    }

    char* memory_;
    int n_pes_;
};

}  // namespace heddle::checking::races
