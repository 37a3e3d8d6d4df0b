// How long single operations took: counts in buckets of equal width within each power of two of nanoseconds
// (log-linear, as in HDR histograms), and the stamps that fill them. A bucket is at most 1/32 of its values wide.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "programs/common/clock.hpp"

namespace shmem_mt {

// Plain bytes, so that PEs can send it as it is.
struct Histogram {
    static constexpr int kBits = 5;  // 2^kBits buckets to a power of two
    static constexpr int kMostBits = 40;
    static constexpr long kLongestNs = (1L << kMostBits) - 1;  // 18 minutes; what takes longer counts as that
    static constexpr int kBuckets = (kMostBits - kBits + 1) << kBits;

    uint32_t counts[kBuckets] = {};
    long total = 0;
    double longest_s = 0;

    static int bucket_of(long ns) {
        const int shift = std::max(0, 63 - __builtin_clzl(static_cast<unsigned long>(ns) | 1) - kBits);
        return (shift << kBits) + static_cast<int>(ns >> shift);
    }

    // The shortest time that the bucket counts.
    static long least_ns(int bucket) {
        const int shift = std::max(0, (bucket >> kBits) - 1);
        return static_cast<long>(bucket - (shift << kBits)) << shift;
    }

    void add(double seconds) {
        const double ns = std::clamp(1e9 * seconds, 0.0, static_cast<double>(kLongestNs));
        ++counts[bucket_of(static_cast<long>(ns))];
        ++total;
        longest_s = std::max(longest_s, seconds);
    }

    void add(const Histogram& other) {
        for (int bucket = 0; bucket < kBuckets; ++bucket) counts[bucket] += other.counts[bucket];
        total += other.total;
        longest_s = std::max(longest_s, other.longest_s);
    }

    // JSON: [[ns, count], ...] of the buckets that count something, each by its shortest time.
    std::string pairs() const {
        std::string text = "[";
        for (int bucket = 0; bucket < kBuckets; ++bucket) {
            if (counts[bucket] > 0)
                text += (text.size() > 1 ? ",[" : "[") + std::to_string(least_ns(bucket)) + "," +
                        std::to_string(counts[bucket]) + "]";
        }
        return text + "]";
    }
};

// The clock beside the operations of one thread: each counts from the mark before it. The look at the clock (about 25 ns)
// is taken off, the bookkeeping behind it (5 ns) is not.
// Without histograms a mark is a branch that is never taken.
class Marks {
  public:
    // `histograms`: one for each thread, or null.
    Marks(std::vector<Histogram>* histograms, int thread)
        : histogram_(histograms != nullptr ? &(*histograms)[static_cast<size_t>(thread)] : nullptr),
          last_(histogram_ != nullptr ? now_seconds() : 0) {}

    void mark() {
        if (histogram_ == nullptr)
            return;
        const double now = now_seconds();
        histogram_->add(std::max(0.0, now - last_ - cost_s_));
        last_ = now;
    }

  private:
    static inline const double cost_s_ = clock_cost();
    Histogram* const histogram_;
    double last_;
};

}  // namespace shmem_mt
