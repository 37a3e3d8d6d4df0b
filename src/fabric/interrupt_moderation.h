// Interrupt moderation: how long the service thread may nap while large data comes, in place of a wake-up for each
// segment. As network cards moderate theirs, by time and bytes.
//
// Bodies of large data are asked for one after the other, and arrive; how much of one has come nobody tells. So the
// rate is that of whole bodies, and what has come since the last one is what the rate foresees. A nap lasts:
//   - no longer than kMaxNapNs, as requests of other PEs wait meanwhile
//   - no longer than half of what is left takes, as the end of the last body is not to be missed: naps become shorter
//     and shorter, and where the rate was too low it becomes right within a few bodies
//   - until about budget() bytes have come. The budget halves where bodies come slower with naps than before, because
//     the kernel's buffers have been full, and grows again step by step
//   - not at all where fewer than kMinBytes would come or kMinNapNs pass, or more has been foreseen than has come: the
//     thread then waits for the network's event, which measures the rate without naps
//
// Threads: one. No locks, no clock of its own.
#pragma once

#include "os/clock.h"

#include <cstdint>

namespace heddle::fabric {

class InterruptModeration {
  public:
    static constexpr uint64_t kMinNapNs = os::kMillisecondNs / 10, kMaxNapNs = os::kMillisecondNs;
    // Two segments of 16 KiB, as the kernel hands them over (GRO, GSO); and what a socket's buffer has at first on
    // Linux (tcp_rmem). It grows.
    static constexpr uint64_t kMinBytes = 32 << 10, kMaxBytes = 128 << 10;

    // Of a thread that has nothing more to move now. asked, arrived: bytes of all bodies so far. may_nap: nobody waits.
    // Returns the length of its nap; 0: none.
    uint64_t nap_ns(uint64_t now_ns, uint64_t asked, uint64_t arrived, bool may_nap = true);
    // Bytes that may come during a nap.
    uint64_t budget() const { return budget_; }

  private:
    void measure(uint64_t bytes, uint64_t ns);

    double bytes_per_ns_ = 0;
    uint64_t budget_ = kMaxBytes;
    // The next body comes without naps: the rate is unknown, or naps as short as can be were slow.
    bool measures_ = true;
    bool comes_ = false;     // a body is on its way
    bool napped_ = false;    // since since_ns_
    uint64_t since_ns_ = 0;  // the last body was complete, or the first was asked for
    uint64_t arrived_ = 0;   // at that time
};

}  // namespace heddle::fabric
