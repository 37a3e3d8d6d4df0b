// What a PE publishes for reports of where it is (docs/decisions/0049): the waits in which its threads sleep, who waits
// for it, and its last calls. Lies in the job page, so that the launcher and other PEs read it, also after the PE has
// died. Written by checking/status; readers take no byte of it on trust (bootstrap/status_report.h).
//
// Threads: any. Cost: no memory until a thread of the PE sleeps in a wait.
#pragma once

#include "sync/snapshot.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace heddle::bootstrap {

// A wait in which a thread sleeps.
struct WaitState {
    enum class Awaits : uint8_t {
        kUnknown,
        kValue,     // value_bytes bytes in symmetric memory, compared with value
        kAnyValue,  // one of nelems elements, from there on
        kLock,      // the lock there
    };
    enum class Region : uint8_t { kNone, kHeap, kData };
    static constexpr uint64_t kStepOnNode = uint64_t{1} << 62;  // in step: of a team's part on this node

    uint64_t since_ns = 0;     // CLOCK_MONOTONIC, when the wait began; 0: no wait
    uint64_t file_offset = 0;  // of what the wait looks at, in the node's memory
    uint64_t offset = 0;       // of that from the start of its region
    uint64_t object = 0;       // its address as in the executable's file, where that has static data; 0: unknown
    uint64_t value = 0;        // that the wait compares with
    uint64_t nelems = 0;
    uint64_t step = 0;    // of a collective, a word as in team/team_segment.h; 0: none
    uint64_t linked = 0;  // the address of the call as in its module's file
    uint64_t seen = 0;    // the value there when the last write was looked for
    uint64_t number = 0;  // of the collective: the steps that its team has begun; 0: unknown
    int32_t thread = 0;   // as gettid tells
    int32_t holder = -1;  // the PE that holds the lock; -1: unknown
    int32_t node = 0;     // of the PE
    int32_t writer = -1;  // the PE whose write was the last, by the call writer_call; -1: unknown
    Awaits awaits = Awaits::kUnknown;
    Region region = Region::kNone;
    uint8_t value_bytes = 0;
    uint8_t is_signed = 0;
    char comparison[4] = "";  // ">="
    char is_object_known = 0;
    char padding[7] = {};
    char function[48] = "";
    char place[64] = "";         // of the call: "prog+0x12bc"; empty: not known yet
    char writer_call[128] = "";  // "shmem_long_p (called at prog+0x12bc)"
    char module[160] = "";       // the path of the call's module; empty: unknown, or too long
};

// PEs that wait for this one: they are in a step of a collective to which this PE has not come.
struct Waiters {
    static constexpr uint64_t kMost = 32;

    uint64_t since_ns = 0;  // this PE's wait when it looked
    uint64_t number = 0;    // of waiters; kMost of them are told
    struct Waiter {
        int64_t slot;
        uint64_t since_ns;  // the wait of that PE
    } waiters[kMost] = {};
};

// PEs of other nodes that have not acknowledged all that this PE has sent to them.
struct Unacked {
    static constexpr uint64_t kMost = 8;

    uint64_t since_ns = 0;  // this PE's wait when it looked
    uint64_t number = 0;    // of PEs; kMost of them are told
    struct Target {
        int64_t pe;
        uint64_t sent_bytes;   // of the streams to that PE that wait for an acknowledgement
        uint64_t acked_bytes;  // of these
        uint64_t replies;      // values that have not come back
    } targets[kMost] = {};
};

// A call in the ring of the last ones.
struct CallRecord {
    enum class Kind : uint64_t { kNone, kWait, kCollective };

    uint64_t at_ns = 0;
    Kind kind = Kind::kNone;
    char text[112] = "";  // "shmem_barrier_all (called at prog+0x12bc)"; of a wait, which sleeps, the function alone
};

struct alignas(64) PeStatus {
    static constexpr uint32_t kThreads = 8;  // of whose waits reports tell
    static constexpr uint32_t kCalls = 16;

    std::atomic<uint32_t> entries;  // of `waits` that are in use, a bit each
    std::atomic<uint32_t> n_calls;  // that the ring has seen
    sync::Snapshot<WaitState> waits[kThreads];
    sync::Snapshot<Waiters> waiters;
    sync::Snapshot<Unacked> unacked;
    sync::Snapshot<CallRecord> calls[kCalls];

    // An entry for a wait; -1: all are in use.
    int claim() {
        uint32_t taken = entries.load(std::memory_order_relaxed);
        while (~taken & ((uint32_t{1} << kThreads) - 1)) {
            const int entry = __builtin_ctz(~taken);
            // Acquire: pairs with PeStatus::release; an entry's writers take turns.
            if (entries.compare_exchange_weak(taken, taken | uint32_t{1} << entry, std::memory_order_acquire,
                                              std::memory_order_relaxed))
                return entry;
        }
        return -1;
    }
    void release(int entry) {
        entries.fetch_and(~(uint32_t{1} << entry), std::memory_order_release);  // pairs with PeStatus::claim
    }
    // The wait of an entry; false when there is none.
    bool read(uint32_t entry, WaitState* wait) const {
        // Relaxed: an entry that changes meanwhile is the one before or the one after.
        return entry < kThreads && (entries.load(std::memory_order_relaxed) >> entry & 1) != 0 &&
               waits[entry].read(wait) && wait->since_ns != 0;
    }
};

}  // namespace heddle::bootstrap
