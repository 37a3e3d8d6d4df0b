// RaceDetector: what a PE tells of its accesses, and of what orders them. The memory of the search is on this node
// (detector.h) or on another one (remote_detector.h). Threads: any of the PE.
#pragma once

#include "base/call.h"
#include "checking/races/block_bytes.h"
#include "checking/races/collective_clocks.h"
#include "checking/races/mark.h"
#include "checking/races/pending_buffers.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace heddle::checking::races {

// How this PE has last learned of another one's operations.
enum class Edge : uint8_t { kNone, kWait, kRead, kLock, kCollective };

// A race, to be reported.
struct Race {
    Mark earlier, later;    // of them, `later` is this PE's access
    int owner = 0;          // of the memory; -1: this PE's private memory
    size_t position = 0;    // the first that both have
    size_t bytes = 0;       // of the later access, from position on
    bool is_known = false;  // the program has ordered the earlier call before the later one, but not its completion
    Edge edge = Edge::kNone;
    bool is_buffer = false;         // the earlier one is of a local buffer
    const void* address = nullptr;  // of the private memory
};

// An access to the symmetric memory of a PE.
struct Access {
    int owner = 0;
    size_t position = 0;
    size_t bytes = 0;
    bool writes = false;
    bool is_atomic = false;
    Completion completion = Completion::kAtReturn;
    Flow flow = Flow::kDefault;
};

class RaceDetector {
  public:
    RaceDetector() = default;
    virtual ~RaceDetector() = default;
    RaceDetector(const RaceDetector&) = delete;
    RaceDetector& operator=(const RaceDetector&) = delete;

    virtual void access(const Access& access, const base::Call& call) = 0;
    // access, of several, of which none is before another.
    struct AtOnce {
        Access access;
        base::Call call;
    };
    virtual void access_at_once(const std::vector<AtOnce>& accesses) = 0;
    // access_at_once, of plain accesses to some bytes of a block of memory each. position: of the whole block.
    struct OfBlock {
        int owner;
        size_t position;
        bool writes;
        base::Call call;
        BlockBytes bytes;
    };
    virtual void access_blocks(const std::vector<OfBlock>& accesses) = 0;
    // access, of a buffer in the collective that this PE has entered: who learns of its entry knows of the access.
    virtual void access_in_collective(const Access& access, const base::Call& call) = 0;
    // access, of an atomic or signal that others may wait for.
    virtual void update(const Access& access, const base::Call& call, bool is_signal) = 0;
    // A local buffer of a non-blocking operation, in use until its flow is quiet; and a local buffer of any call.
    virtual void hold(const void* buffer, size_t bytes, bool writes, Flow flow, const base::Call& call) = 0;
    virtual void touch(const void* buffer, size_t bytes, bool writes, const base::Call& call) = 0;
    virtual PendingBuffers::Hull held() = 0;
    // Whether an address in the hull may be in such a buffer.
    virtual bool may_hold(const void* buffer, size_t bytes) = 0;

    // A wait, a test, or an operation that returns a value, has seen the words of owner.
    virtual void see(int owner, size_t position, size_t bytes, Edge edge) = 0;
    // The last write of which the detector has been told to this PE's words, as far as that is known: by which PE, and
    // the call. False: unknown, as always to a PE on another node. Takes no lock for longer than a look, and waits for
    // none.
    virtual bool try_last_write(size_t position, size_t bytes, int* pe, base::CallText* call) const = 0;
    virtual void quiet(Flow flow) = 0;
    virtual void quiet_to(Flow flow, int target) = 0;  // what goes to one PE alone
    virtual void quiet_all() = 0;
    virtual void fence(Flow flow) = 0;

    // A lock's word is that of PE 0.
    virtual void release_lock(size_t position) = 0;
    virtual void take_lock(size_t position) = 0;

    virtual void enter_collective(const CollectiveKey& key, bool gives) = 0;
    virtual void leave_collective(const CollectiveKey& key, bool takes) = 0;

    // A value has been seen of which is not known who wrote it.
    virtual void see_unknown() = 0;
    // All that PEs did before the last finalize counts as known: they met there, and in init behind it. What a PE does
    // that has left this init earlier does not.
    virtual void learn_ended() = 0;
    // In finalize, before all PEs meet. Calls behind it, of threads that run on, need not do anything.
    virtual void end() = 0;
    // Memory is shared in ways that the detector does not see (shmem_ptr): a wait without a known writer learns all.
    virtual void expect_stores() = 0;

    // Returns when all that this PE has told is known to other PEs' detectors: before what it has told of can be seen.
    virtual void settle() = 0;

    // The text of a call of any PE (places.h).
    virtual base::CallText text_of(int pe, uint32_t place) = 0;
    // True the first time of a pair of calls in the job, in either order.
    virtual bool is_new(const base::CallText& one, const base::CallText& other) = 0;
};

}  // namespace heddle::checking::races
