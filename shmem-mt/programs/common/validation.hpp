// The bytes that a validating pass sends and expects. A byte depends on the sending PE, its thread, the pass, the slot
// and its place in the slot, so data of a wrong peer, pass or place is seen as wrong. The verdict counts comparisons: a
// check that did not run is a failure, and so is a check that cannot fail.
#pragma once

#include <cstdint>
#include <cstring>

#include "programs/common/faults.hpp"

namespace shmem_mt {

// Identifies the sender, and the sample or pass; leaves 28 bits for a running message number. Different for all threads
// (up to 62 * 16) of all PEs in a pass; among up to 2^14 PEs of up to 62 threads for 2^16 passes, of more for 2^12.
inline long make_base(int pe, int thread, long token) {
    const uint64_t number = static_cast<uint64_t>(pe) + 1;
    const uint64_t of_62 = static_cast<uint64_t>(thread) % 62 + 1, which_62 = static_cast<uint64_t>(thread) / 62;
    const uint64_t pass = (static_cast<uint64_t>(token) ^ number >> 14 ^ which_62 << 12) & 0xffff;
    return static_cast<long>(number << 50 | of_62 << 44 | pass << 28);
}

// The 8 bytes at word `word` of slot `slot` (splitmix64 of the three).
inline uint64_t pattern_word(long base, long slot, long word) {
    uint64_t x = static_cast<uint64_t>(base) ^ (static_cast<uint64_t>(slot) << 32) ^ static_cast<uint64_t>(word);
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

inline void fill_slot(char* slot_memory, long base, long slot, long bytes) {
    for (long at = 0; at < bytes; at += 8) {
        const uint64_t word = pattern_word(base, slot, at / 8);
        std::memcpy(slot_memory + at, &word, static_cast<size_t>(bytes - at < 8 ? bytes - at : 8));
    }
}

class Checker {
  public:
    explicit Checker(Fault fault) : fault_(fault) {}

    // Compares `bytes` bytes at `actual` with those at `expected`.
    void compare(const void* actual, const void* expected, long bytes) {
        expected_bytes_ += bytes;
        if (fault_ == Fault::kCheckNeverRuns)
            return;
        checked_bytes_ += bytes;
        if (std::memcmp(actual, expected, static_cast<size_t>(bytes)) != 0)
            wrong_ = true;
    }

    void compare_slot(const char* actual, long base, long slot, long bytes) {
        for (long at = 0; at < bytes; at += 8) {
            const uint64_t word = pattern_word(base, slot, at / 8);
            compare(actual + at, &word, bytes - at < 8 ? bytes - at : 8);
        }
    }

    void compare_word(long actual, long expected) { compare(&actual, &expected, 8); }

    // Takes over what another one, of another thread, has compared.
    void add(const Checker& other) {
        wrong_ = wrong_ || !other.ok();
        checked_bytes_ += other.checked_bytes_;
        expected_bytes_ += other.expected_bytes_;
    }

    // True when all that was to be compared was compared and equal, and the comparison can tell right from
    // wrong.
    bool ok() const {
        Checker control(fault_);
        const uint64_t right = 42, wrong = right ^ 1;
        control.compare(&wrong, &right, 8);
        return !wrong_ && checked_bytes_ == expected_bytes_ && control.wrong_;
    }

    long checked_bytes() const { return checked_bytes_; }
    long expected_bytes() const { return expected_bytes_; }

  private:
    Fault fault_;
    bool wrong_ = false;
    long checked_bytes_ = 0;
    long expected_bytes_ = 0;
};

}  // namespace shmem_mt
