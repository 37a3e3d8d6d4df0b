// The job page: the first bytes of the node's memory, made by the launcher before any PE runs (or by the node's first
// PE, when the launcher is not oshrun), and the only thing that launcher and library share. It carries the bootstrap
// (barrier, allgather), tells the launcher who asked to end the job, and shows where each PE waits.
//
// Layout: JobPage, then n_pes PeRecords, then n_pes PeCards, rounded up to whole pages (job_page_bytes). Created
// zeroed; its maker fills magic to cpus and token, and the launcher may read all the rest at any time. Version:
// kJobPageMagic changes with the layout.
#pragma once

#include "os/memfd.h"
#include "sync/meeting.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace heddle::bootstrap {

constexpr uint64_t kJobPageMagic = 0x33656c6464656800;  // "heddle3" as bytes, last first
constexpr size_t kCpuWords = 16;
constexpr int kMaxPes = 4096;  // on one node: far above what can run, small enough that tables of lines stay small

// The environment through which the launcher tells a PE what it is.
constexpr const char* kEnvPe = "HEDDLE_PE";         // its number
constexpr const char* kEnvJobFd = "HEDDLE_JOB_FD";  // descriptor of the node's memory, inherited
constexpr const char* kEnvLifelineFd =
    "HEDDLE_LIFELINE_FD";  // read end of the launcher's pipe, inherited (os/process.h)

constexpr const char* kEnvHandedOver = "HEDDLE_HANDED_OVER";  // the launcher that oshrun asked to start the PEs

enum class PeState : uint32_t {
    kAbsent,   // has not called shmem_init (a shell script, or not one of ours)
    kRunning,  // between init and finalize
    kFinalized,
};

enum class ExitRequest : uint32_t {
    kNone,
    kGlobalExit,  // shmem_global_exit(status) by exit_pe
    kFatal,       // exit_pe ended itself with a message
};

// A request to end the job: who, why, and the status that the launcher returns. Packed as one word, so that it appears
// at once and whole.
struct Exit {
    ExitRequest request = ExitRequest::kNone;
    int pe = 0;
    int status = 0;

    uint64_t pack() const {
        return static_cast<uint64_t>(request) << 56 | static_cast<uint64_t>(pe & 0xffffff) << 32 |
               static_cast<uint32_t>(status);
    }
    static Exit unpack(uint64_t word) {
        return {static_cast<ExitRequest>(word >> 56), static_cast<int>(word >> 32 & 0xffffff),
                static_cast<int>(static_cast<uint32_t>(word))};
    }
};

// What a PE tells the others and the launcher. Written by its PE only.
struct alignas(64) PeRecord {
    static constexpr size_t kPostWords = 4;
    static constexpr size_t kNameWords = 6;  // 48 bytes: the longest name of the standard has 42

    std::atomic<uint32_t> state;             // PeState
    std::atomic<int32_t> pid;                // of the process that called shmem_init; 0 before
    std::atomic<uint64_t> post[kPostWords];  // the PE's contribution to the bootstrap's allgather
    // Where the PE waits, published when a wait stops spinning: the function's name, the variable it watches (or 0) and
    // since when (CLOCK_MONOTONIC ns; 0: it does not wait). Words, so that a reader in the middle of a change sees
    // mixed letters and nothing worse.
    std::atomic<uint64_t> wait_since_ns;
    std::atomic<uint64_t> wait_address;
    std::atomic<uint64_t> wait_name[kNameWords];
};

// How a PE is reached over the network. Written by its PE once, ahead of a barrier; no memory until then.
struct alignas(64) PeCard {
    static constexpr size_t kBytes = 2048 - sizeof(uint64_t);

    uint64_t bytes;  // 0: none
    char data[kBytes];
};
static_assert(sizeof(PeCard) == 2048);

struct JobPage {
    uint64_t magic;
    uint32_t n_pes;
    uint32_t cores;                    // that the job may use on this node
    uint64_t cpus[kCpuWords];          // those cores, a bit each; empty on machines with more than they hold
    std::atomic<uint32_t> threads;     // known to run in the job's PEs on this node
    std::atomic<uint32_t> sleepers;    // those of them that sleep in the library
    std::atomic<uint64_t> exit;        // an Exit, packed; the first to change it from 0 wins
    uint64_t token;                    // of this job, drawn at random
    std::atomic<uint32_t> lost_rails;  // of the network, a bit each (HEDDLE_RAIL_LOSS)
    sync::Meeting meeting;             // the bootstrap's barrier

    PeRecord* records() { return reinterpret_cast<PeRecord*>(this + 1); }
    PeCard* cards() { return reinterpret_cast<PeCard*>(records() + n_pes); }
};
static_assert(sizeof(JobPage) % alignof(PeRecord) == 0);

inline size_t job_page_bytes(int n_pes, size_t page_bytes = os::page_bytes()) {
    return os::round_up(sizeof(JobPage) + static_cast<size_t>(n_pes) * (sizeof(PeRecord) + sizeof(PeCard)), page_bytes);
}

// A page for n_pes PEs in new memory, all filled in; *fd is the memory's descriptor. Null on failure, with errno set.
JobPage* create_job_page(int n_pes, int* fd);

}  // namespace heddle::bootstrap
