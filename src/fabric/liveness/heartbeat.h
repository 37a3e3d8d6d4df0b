// Heartbeat: how the nodes of a job notice that one of them is gone without a message: its network is cut off, or its
// power is. The first PEs of the nodes form a ring. Each sends a heartbeat to the PE before it twice a second, and
// listens to the PE behind it. A PE that has heard nothing of its neighbour for the allowed time, at the start for
// kConnectNs more, treats the neighbour as lost. It reports the loss to the PE before it, which passes the report on.
//
// Heartbeats have a channel of their own, so that no queue of data delays them. A PE that was stopped itself (by a
// debugger, or with its machine) starts to count anew. With several rails each rail has heartbeats: a PE that is silent
// on all rails is gone, and one that is silent on some has lost these rails (Network::tick). Heartbeats also carry the
// set of lost rails, at once when it grows.
//
// A PE sends and listens until it has passed the last barrier of shmem_finalize but one: until then others may wait for
// its answers, and it for theirs. Its last heartbeat says that it is silent from then on, since a neighbour may pass
// that barrier much later (tests/model/leaving.pml).
//
// Threads: the service thread alone.
#pragma once

#include "fabric/endpoint/channel.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace heddle::fabric {

class Heartbeat {
  public:
    static constexpr uint64_t kPeriodNs = 500000000;
    // For the first heartbeat, which waits for a connection.
    static constexpr uint64_t kConnectNs = 10000000000;

    // Of a PE with neighbours in the ring. heartbeat_timeout_ns: for how long this PE may be silent, as it tells the PE
    // before it, and at least allows the PE behind it; 0: for ever.
    Heartbeat(Channel& channel, uint64_t heartbeat_timeout_ns);

    // As new: nothing has been heard, and no loss is being passed on. All PEs have come to the barrier of shmem_init.
    void begin() {
        since_ns_ = 0;
        is_known_ = has_left_ = losing_ = false;
    }
    // Sends what is due, and listens. To be called every kPeriodNs at least.
    void tick(uint64_t now_ns);
    // As of the last tick: the neighbour has not been heard for the time that is allowed.
    bool is_silent() const;
    // As of the last tick: the neighbour has been heard within the last two periods.
    bool is_heard() const { return is_known_ && silence_ns() < 2 * kPeriodNs; }
    static constexpr size_t kMaxReason = 128;
    // The neighbour's host, and for how long it has been silent.
    void describe_silence(char (&reason)[kMaxReason]) const;
    // Where is_silent: tells the PE before, and treats the neighbour as lost.
    void lose_neighbour();
    // The last heartbeat before begin: this PE is silent from here on, and not to be missed.
    void leave();
    // A kHeartbeat has come.
    void on_heartbeat(const Header& header, const char* body, size_t bytes);

  private:
    static constexpr size_t kMaxName = 64;

    uint64_t silence_ns() const { return now_ns_ - std::min(now_ns_, since_ns_); }
    void notify_neighbour(HeartbeatHeader news);
    void learn(int pe, uint32_t lost_rails);
    void lose(int pe, const char* reason);

    Channel& channel_;
    const uint64_t timeout_ns_;
    uint64_t now_ns_ = 0;           // of the last tick
    uint64_t sent_ns_ = 0;          // when the last heartbeat was sent; 0: none was
    uint64_t since_ns_ = 0;         // from when on the neighbour's silence counts; 0: from the next tick
    bool is_known_ = false;         // the neighbour has been heard, and has not left
    bool has_left_ = false;         // and may be silent
    uint64_t allowed_ns_ = 0;       // for which the neighbour asked to be silent
    bool losing_ = false;           // a loss is being passed on
    uint32_t announced_rails_ = 0;  // the lost rails that were in the last heartbeat
    char own_name_[kMaxName] = {};  // of this host
    char name_[kMaxName] = {};      // of the neighbour's host
};

}  // namespace heddle::fabric
