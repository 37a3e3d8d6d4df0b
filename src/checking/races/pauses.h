// Pauses: short ones of the calling thread, so that PEs come in more than one order. A race between calls that came in
// a lucky order, each behind the other's flag, is none to the detector. Each run draws others. Threads: any.
#pragma once

#include "checking/chaos/random.h"
#include "os/clock.h"

#include <atomic>
#include <cstdint>

namespace heddle::checking::races {

class Pauses {
  public:
    explicit Pauses(int pe) : begin_ns_(os::now_ns()), seed_(mix(begin_ns_) + static_cast<uint64_t>(pe)) {}

    // A pause of 10 to 640 us, one time in 8, while all pauses are at most kFreeNs and one in kShare of the time.
    void maybe_pause() {
        // Relaxed: only distinct numbers matter, and two threads may pause a little more together.
        Random random(seed_ + draws_.fetch_add(1, std::memory_order_relaxed));
        if (!random.one_in(8))
            return;
        const uint64_t length = uint64_t{10000} << random.below(7);
        if (spent_ns_.load(std::memory_order_relaxed) + length > kFreeNs + (os::now_ns() - begin_ns_) / kShare)
            return;
        spent_ns_.fetch_add(length, std::memory_order_relaxed);
        os::sleep_ns(length);
    }

  private:
    static constexpr uint64_t kFreeNs = 20000000, kShare = 8;

    const uint64_t begin_ns_, seed_;
    std::atomic<uint64_t> draws_{0}, spent_ns_{0};
};

}  // namespace heddle::checking::races
