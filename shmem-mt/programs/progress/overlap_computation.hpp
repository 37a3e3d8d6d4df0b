// What the benchmark overlap computes beside a communication, as --computation says. Each has a known length, counted in
// units, and a known result. They feel different things:
//   registers  the steps of computation.hpp, each of which waits for the one before: what takes the core away. A thread
//              on the same core's other half costs it little, and traffic in the caches and to memory costs it nothing
//   fma        multiplications and additions of doubles, in registers, as many at a time as the core can: besides, a
//              thread on the core's other half, which takes the units
//   branches   the steps of `registers`, and a branch behind each that nobody foresees: besides, whatever shares the
//              core's front end
//   l1         sums of words in the nearest cache, as many loads at a time as the core can: besides, whatever shares the
//              core, and copies that take its words out of that cache
//   memory     the same sums over twice the last cache: besides, all bytes that a communication moves through memory,
//              which the sums slow down in turn
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "programs/common/clock.hpp"
#include "programs/common/payload.hpp"
#include "programs/progress/computation.hpp"

namespace shmem_mt {

constexpr const char* kRegisters = "registers";
constexpr const char* kMultiplyAdds = "fma";
constexpr const char* kBranches = "branches";
constexpr const char* kNearestCache = "l1";
constexpr const char* kMemory = "memory";

class Computation {
  public:
    explicit Computation(const std::string& kind)
        : kind_(kind), lines_(bytes_of(kind) / kLineBytes), words_(static_cast<size_t>(lines_ * kWords)) {
        for (size_t i = 0; i < words_.size(); ++i) words_[i] = kStepFactor * (i + 1);
    }

    const std::string& kind() const { return kind_; }

    // Of the memory that it goes through.
    static long bytes_of(const std::string& kind) {
        constexpr long kHalfOfNearest = 16L << 10;  // nearest caches have 32 KiB and more
        return kind == kMemory ? 2 * last_cache_bytes() : kind == kNearestCache ? kHalfOfNearest : 0;
    }

    // `units` further steps, or sums of further lines, which begin where the last ones ended. A few cycles each, but for
    // lines of memory.
    uint64_t run(uint64_t x, long units) {
        if (kind_ == kMultiplyAdds)
            return x + multiply_add(units);
        if (kind_ == kBranches)
            return branch(x, units);
        if (lines_ == 0)
            return compute(x, units);
        while (units > 0) {
            const long count = std::min(units, lines_ - next_);
            x += sum(next_, count);
            next_ = (next_ + count) % lines_;
            units -= count;
        }
        return x;
    }

    // What run() will return.
    uint64_t result(uint64_t x, long units) const {
        if (kind_ == kMultiplyAdds)
            return x + static_cast<uint64_t>(units) * (kSums * (kSums + 1) / 2);
        if (lines_ == 0)
            return computed(x, units);
        const long end = next_ + units;
        const uint64_t rounds = static_cast<uint64_t>(end / lines_);
        return x + rounds * sum_ahead_of(lines_) + sum_ahead_of(end % lines_) - sum_ahead_of(next_);
    }

    // Of this core: the best of several tries of about a millisecond.
    double seconds_per_unit() {
        constexpr long kUnits = 200000;
        double best = 1;
        volatile uint64_t sink = 0;
        for (int i = 0; i < 9; ++i) {
            const double start = now_seconds();
            sink = run(sink, kUnits);
            best = std::min(best, (now_seconds() - start) / kUnits);
        }
        return best;
    }

  private:
    static constexpr long kWords = kLineBytes / 8;  // of a line
    static constexpr int kSums = 8;                 // independent of each other

    // The sums of 1 to kSums, `units` times: whole numbers, which doubles hold.
    static uint64_t multiply_add(long units) {
        volatile const double hidden = 1;  // the compiler may not leave the multiplications out
        const double factor = hidden;
        double sums[kSums] = {};
        for (long i = 0; i < units; ++i) {
            for (int s = 0; s < kSums; ++s) sums[s] = sums[s] * factor + (s + 1);
        }
        double all = 0;
        for (const double sum : sums) all += sum;
        return static_cast<uint64_t>(all);
    }

    // compute(x, units), and a branch on the highest bit of each step, which is as good as drawn.
    static uint64_t branch(uint64_t x, long units) {
        uint64_t set = 0, clear = 0;
        for (long i = 0; i < units; ++i) {
            x = x * kStepFactor + kStepSummand;
            if (x >> 63) {
                asm volatile("" : "+r"(set));  // the branches stay branches
                ++set;
            } else {
                asm volatile("" : "+r"(clear));
                ++clear;
            }
        }
        return x + (set + clear - static_cast<uint64_t>(units));
    }

    // In four sums, so that loads need not wait for additions.
    uint64_t sum(long first, long count) const {
        uint64_t sums[4] = {};
        const uint64_t* line = words_.data() + first * kWords;
        for (const uint64_t* const end = line + count * kWords; line < end; line += kWords) {
            for (long i = 0; i < kWords; ++i) sums[i % 4] += line[i];
        }
        return sums[0] + sums[1] + sums[2] + sums[3];
    }

    uint64_t sum_ahead_of(long line) const {
        const uint64_t count = static_cast<uint64_t>(line * kWords);
        return kStepFactor * (count * (count + 1) / 2);
    }

    const std::string kind_;
    const long lines_;  // 0: no memory
    std::vector<uint64_t> words_;
    long next_ = 0;  // line
};

}  // namespace shmem_mt
