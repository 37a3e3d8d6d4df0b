// Collective clocks: what the members of a collective know when they enter it, joined for those who leave it. A
// collective is known by its team and the step of the team at which it begins, alike on all members. In shared memory,
// which begins zeroed. Threads: any; a lock for each team.
#pragma once

#include "checking/races/clock.h"
#include "checking/races/shared_lock.h"

#include <algorithm>
#include <atomic>
#include <mutex>

namespace heddle::checking::races {

struct CollectiveKey {
    uint64_t team = 0;  // kSpans and an id of a team that spans nodes; otherwise a team segment of a node
    uint32_t step = 0;

    static constexpr uint64_t kSpans = uint64_t{1} << 63;
};

class CollectiveClocks {
  public:
    CollectiveClocks(char* memory, int n_pes) : memory_(memory), n_pes_(n_pes) {}
    static size_t bytes(int n_pes) { return kTeams * team_bytes(n_pes); }

    // A member enters, and knows `clock`.
    void enter(const CollectiveKey& key, const Clock& clock) {
        Team* const team = find(key.team);
        if (!team)
            return;
        const std::lock_guard locked(team->lock);
        Round& round = round_of(*team, key.step);
        join(words_of(round), clock.words(), n_pes_);
    }

    // A member leaves, and joins into `clock` what those that have entered knew. False when that is not known.
    bool leave(const CollectiveKey& key, Clock* clock) {
        Team* const team = find(key.team);
        if (!team)
            return false;
        const std::lock_guard locked(team->lock);
        clock->join(words_of(round_of(*team, key.step)));
        return true;
    }

  private:
    static constexpr size_t kTeams = 256;
    // Members are at most one collective apart: a collective of a checked run begins with a barrier.
    static constexpr size_t kRounds = 4;

    struct Round {
        uint64_t step_plus_one;  // 0: unused
        uint64_t age;
    };
    struct Team {
        std::atomic<uint64_t> team_plus_one;  // 0: free
        SharedLock lock;
        uint64_t ages;
    };
    static size_t round_bytes(int n_pes) { return sizeof(Round) + clock_words(n_pes) * sizeof(Time); }
    static size_t team_bytes(int n_pes) { return sizeof(Team) + kRounds * round_bytes(n_pes); }
    static Time* words_of(Round& round) { return reinterpret_cast<Time*>(&round + 1); }
    Round& round_at(Team& team, size_t i) {
        return *reinterpret_cast<Round*>(reinterpret_cast<char*>(&team + 1) + i * round_bytes(n_pes_));
    }

    Team* find(uint64_t of) {
        const uint64_t key = of + 1;
        for (size_t i = 0; i < kTeams; ++i) {
            auto* const team = reinterpret_cast<Team*>(memory_ + (key + i) % kTeams * team_bytes(n_pes_));
            // Relaxed: a team never changes, and what is behind it has a lock.
            uint64_t there = team->team_plus_one.load(std::memory_order_relaxed);
            if (there == key ||
                (there == 0 &&
                 (team->team_plus_one.compare_exchange_strong(there, key, std::memory_order_relaxed) || there == key)))
                return team;
        }
        return nullptr;
    }

    // The round of the step: made in place of the oldest one by the first member.
    Round& round_of(Team& team, uint32_t step) {
        Round* oldest = nullptr;
        for (size_t i = 0; i < kRounds; ++i) {
            Round& round = round_at(team, i);
            if (round.step_plus_one == uint64_t{step} + 1)
                return round;
            if (!oldest || round.age < oldest->age)
                oldest = &round;
        }
        *oldest = {uint64_t{step} + 1, ++team.ages};
        std::fill_n(words_of(*oldest), clock_words(n_pes_), Time{0});
        return *oldest;
    }

    char* memory_;
    int n_pes_;
};

}  // namespace heddle::checking::races
