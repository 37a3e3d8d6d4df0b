// The counts and times that a simulation takes while messages arrive.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "event_queue.hpp"

namespace shmem_mt {

// Times by size, in classes an eighth of an octave wide: a percentile is right to 6 %, the mean exactly.
class Histogram {
  public:
    void add(Time value, uint64_t weight) {
        counts_[class_of(value)] += weight;
        sum_ += static_cast<double>(value) * static_cast<double>(weight);
        total_ += weight;
    }

    double mean() const { return total_ ? sum_ / static_cast<double>(total_) : 0; }

    // In the middle of the class that the `share` smallest end in.
    double quantile(double share) const {
        uint64_t left = static_cast<uint64_t>(share * static_cast<double>(total_));
        for (size_t i = 0; i < kClasses; ++i) {
            if (counts_[i] > left)
                return (lowest_of(i) + lowest_of(i + 1)) / 2;
            left -= counts_[i];
        }
        return 0;
    }

  private:
    static constexpr unsigned kBits = 3;
    static constexpr size_t kClasses = 64 << kBits;

    static size_t class_of(Time value) {
        if (value < (1U << kBits))
            return value;
        const unsigned octave = 63U - static_cast<unsigned>(__builtin_clzll(value));
        return ((octave - kBits + 1) << kBits) + ((value >> (octave - kBits)) & ((1U << kBits) - 1));
    }

    static double lowest_of(size_t index) {
        if (index < (1U << kBits))
            return static_cast<double>(index);
        const double mantissa = static_cast<double>((1U << kBits) + (index & ((1U << kBits) - 1)));
        return mantissa * static_cast<double>(uint64_t{1} << ((index >> kBits) - 1));
    }

    std::vector<uint64_t> counts_ = std::vector<uint64_t>(kClasses + 1, 0);
    double sum_ = 0;
    uint64_t total_ = 0;
};

// Messages a second: of a sliding window between the first and the last fifth, when all cores are at full speed; of
// bursts the second half, which begins and ends with a burst when their number is even.
class Throughput {
  public:
    Throughput(uint64_t total, bool bursts)
        : from_(bursts ? total / 2 : total / 5), to_(bursts ? total : total - from_) {}

    void add(Time now, uint64_t messages) {
        done_ += messages;
        end_ = now;
        if (done_ <= from_)
            begin_ = now, begin_count_ = done_;
        if (done_ <= to_)
            last_ = now, last_count_ = done_;
    }

    uint64_t done() const { return done_; }
    Time end() const { return end_; }

    double per_second() const {
        const bool steady = last_ > begin_;
        const double messages = static_cast<double>(steady ? last_count_ - begin_count_ : done_);
        return messages * 1e12 / static_cast<double>(std::max<Time>(steady ? last_ - begin_ : end_, 1));
    }

  private:
    uint64_t from_, to_, done_ = 0, begin_count_ = 0, last_count_ = 0;
    Time begin_ = 0, last_ = 0, end_ = 0;
};

// How far messages of a flow arrive out of the order in which they were sent.
struct Reordering {
    uint64_t overtaken = 0;  // messages that came behind one that was sent later
    uint64_t distance = 0;   // the sum of how many places behind the latest they were
    uint64_t farthest = 0;
    uint64_t released_out_of_order = 0;  // to the program, after what the rule does about it
    uint64_t most_buffered = 0;          // messages of one flow in the reorder buffer
};

}  // namespace shmem_mt
