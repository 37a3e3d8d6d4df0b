// Expected wait: whether a producer is likely to wait soon behind the record that it posts. It is where a wait began
// soon behind the record before. A thread that waits polls, and lets others run ahead of that: their records and its
// own leave together (docs/decisions/0041).
//
//     posted    a record was given to the sender: at once, or left to the next poll
//     begin     the producer is about to wait
//
// Threads: the producer. One that used the stream set before may begin waits, too (operations::flush_before_wait): the
// values are hints, where a wrong one costs a message or a yield. Relaxed, all.
#pragma once

#include <atomic>
#include <cstdint>

namespace heddle::fabric {

class ExpectedWait {
  public:
    static constexpr uint64_t kSoonNs = 10000;  // about what a message of its own costs over TCP

    bool is_expected() const { return is_expected_.load(std::memory_order_relaxed); }
    // now_ns: not 0. left: to the next poll.
    void posted(uint64_t now_ns, bool left) {
        is_expected_.store(false, std::memory_order_relaxed);
        left_.store(left, std::memory_order_relaxed);
        posted_ns_.store(now_ns, std::memory_order_relaxed);
    }
    // Whether a record is posted since the last wait began.
    bool has_posted() const { return posted_ns_.load(std::memory_order_relaxed) != 0; }
    // Where has_posted; true when the last record was left to the next poll.
    bool begin(uint64_t now_ns) {
        is_expected_.store(now_ns - posted_ns_.load(std::memory_order_relaxed) < kSoonNs, std::memory_order_relaxed);
        posted_ns_.store(0, std::memory_order_relaxed);
        return left_.load(std::memory_order_relaxed);
    }

  private:
    std::atomic<uint64_t> posted_ns_{0};  // 0: a wait has begun since
    std::atomic<bool> is_expected_{false};
    std::atomic<bool> left_{false};
};

}  // namespace heddle::fabric
