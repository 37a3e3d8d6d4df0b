// Contributions: of each word of symmetric memory that atomics, signals or locks change, when each PE has last changed
// it. A wait on a counter has seen all of them. In shared memory, which begins zeroed: a hash table of words for each
// owner. A word for which there is no room makes the table incomplete. Whoever sees a word that is not in it then
// counts as knowing all that has happened. Threads: any, without a lock.
#pragma once

#include "checking/races/clock.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace heddle::checking::races {

struct Contribution {
    Time time = 0;  // 0: none
    Flow flow = Flow::kDefault;
    bool is_signal = false;
};

class Contributions {
  public:
    static constexpr size_t kWords = 1 << 13;  // of each owner

    Contributions(char* memory, int n_pes) : memory_(memory), n_pes_(n_pes) {}
    static size_t bytes(int n_pes) { return sizeof(Head) + kWords * word_bytes(n_pes); }

    void add(size_t position, int pe, const Contribution& what) {
        std::atomic<uint64_t>* const word = find(position, true);
        if (!word)
            return;
        const uint64_t packed =
            what.time << 8 | (what.is_signal ? uint64_t{1} << 7 : 0) | static_cast<uint64_t>(what.flow);
        // Release: pairs with Contributions::look. One PE's contributions come under its detector's lock.
        word[1 + pe].store(packed, std::memory_order_release);
    }

    // Calls use(pe, contribution) for each PE. False when the word may have had contributions that are not known.
    template <class Use>
    bool look(size_t position, Use use) {
        std::atomic<uint64_t>* const word = find(position, false);
        if (!word)
            return head().is_incomplete.load(std::memory_order_relaxed) == 0;
        for (int pe = 0; pe < n_pes_; ++pe) {
            const uint64_t packed = word[1 + pe].load(std::memory_order_acquire);  // pairs with Contributions::add
            if (packed != 0)
                use(pe, Contribution{packed >> 8, static_cast<Flow>(packed & 7), (packed >> 7 & 1) != 0});
        }
        return true;
    }

  private:
    struct Head {
        std::atomic<uint64_t> is_incomplete;
        uint64_t spare[7];
    };
    static size_t word_bytes(int n_pes) { return (1 + static_cast<size_t>(n_pes)) * sizeof(uint64_t); }
    Head& head() { return *reinterpret_cast<Head*>(memory_); }

    // The word's key and, behind it, the contributions by PE. Null when the word is not there and not to be made, or
    // there is no room.
    std::atomic<uint64_t>* find(size_t position, bool make) {
        constexpr size_t kProbes = 32;
        const uint64_t key = position / 8 + 1;
        const uint64_t hash = key * 0x9e3779b97f4a7c15 >> 32;
        for (size_t i = 0; i < kProbes; ++i) {
            auto* const word = reinterpret_cast<std::atomic<uint64_t>*>(memory_ + sizeof(Head) +
                                                                        (hash + i) % kWords * word_bytes(n_pes_));
            uint64_t there = word[0].load(std::memory_order_relaxed);
            // Relaxed: a key never changes, and what is behind it has an order of its own.
            if (there == 0 && make && word[0].compare_exchange_strong(there, key, std::memory_order_relaxed))
                return word;
            if (there == key)
                return word;
            if (there == 0)
                return nullptr;
        }
        if (make)
            head().is_incomplete.store(1, std::memory_order_relaxed);
        return nullptr;
    }

    char* memory_;
    int n_pes_;
};

}  // namespace heddle::checking::races
