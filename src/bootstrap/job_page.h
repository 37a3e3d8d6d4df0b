// The job page: the first bytes of the node's memory, made by the launcher before any PE runs (or by the node's first
// PE, when the launcher is not oshrun), and the only thing that launcher and library share. It carries the bootstrap
// (barrier, allgather), tells the launcher who asked to end the job, and shows where each PE waits.
//
// Layout: JobPage, then n_pes PeRecords, then n_pes PeAddressBlobs, rounded up to whole pages (job_page_bytes). Created
// zeroed; its maker fills magic to cpus and token, and the launcher may read all the rest at any time. Version:
// kJobPageMagic changes with the layout.
#pragma once

#include "base/counters.h"
#include "os/memfd.h"
#include "sync/central_barrier.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace heddle::bootstrap {

constexpr uint64_t kJobPageMagic = 0x35656c6464656800;  // "heddle5" as bytes, last first
constexpr size_t kCpuWords = 16;
constexpr int kMaxPes = 4096;  // on one node: far above what can run, small enough that tables of lines stay small

// The environment through which the launcher tells a PE what it is.
constexpr const char* kEnvPe = "HEDDLE_PE";         // its number
constexpr const char* kEnvJobFd = "HEDDLE_JOB_FD";  // descriptor of the node's memory, inherited
// The read end of the launcher's pipe, inherited (os/process.h).
constexpr const char* kEnvLifelineFd = "HEDDLE_LIFELINE_FD";
// The launcher's process and the page's token, PID:TOKEN: for a PE whose descriptors were closed on the way to it. The
// launcher has them under the same numbers.
constexpr const char* kEnvJob = "HEDDLE_JOB";

constexpr const char* kEnvHandedOver = "HEDDLE_HANDED_OVER";  // the launcher that oshrun asked to start the PEs

enum class PeState : uint32_t {
    kAbsent,   // has not called shmem_init (a shell script, or not one of ours)
    kRunning,  // between init and finalize
    kLeaving,  // in its last finalize, or past main: waits for the others
    kFinalized,
};

enum class ExitRequest : uint32_t {
    kNone,
    kGlobalExit,  // shmem_global_exit(status) by exit_pe
    kFatal,       // exit_pe ended itself with a message
    kLauncher,    // the launcher ends the job: nobody need wait for the others any more
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
    // For PEs that leave (team/leaving.h). Written while one does: how often this PE has looked in vain, in a wait that
    // none but another PE can end; and the step of a collective that it has come to and waits in.
    std::atomic<uint32_t> looks;
    std::atomic<uint64_t> wait_step;
    // When it leaves itself: how many steps of the world's room it has begun, and whether it ought to have called
    // shmem_finalize.
    std::atomic<uint64_t> left;
    base::Counters counters;
};

// Where the PE shows that it waits: the function's name, with its end. The PE may be changing the words: mixed letters
// are possible, and of a broken PE anything.
using WaitName = std::array<char, PeRecord::kNameWords * sizeof(uint64_t) + 1>;
WaitName wait_name_of(const PeRecord& record);

// How a PE is reached over the network. Written by its PE once, ahead of a barrier; no memory until then.
struct alignas(64) PeAddress {
    static constexpr size_t kBytes = 2048 - sizeof(uint64_t);

    uint64_t bytes;  // 0: none
    char data[kBytes];
};
static_assert(sizeof(PeAddress) == 2048);

struct JobPage {
    uint64_t magic;
    uint32_t n_pes;
    uint32_t cores;                        // that the job may use on this node
    uint64_t cpus[kCpuWords];              // those cores, a bit each; empty on machines with more than they hold
    std::atomic<uint32_t> threads;         // known to run in the job's PEs on this node
    std::atomic<uint32_t> sleepers;        // those of them that sleep in the library
    std::atomic<uint64_t> exit;            // an Exit, packed; the first to change it from 0 wins
    uint64_t token;                        // of this job, drawn at random
    std::atomic<uint32_t> lost_rails;      // of the network, a bit each (HEDDLE_RAIL_LOSS)
    std::atomic<uint32_t> leaving;         // PEs that wait for the others to leave, too (team/leaving.h)
    std::atomic<uint32_t> told;            // one of them has said why the job cannot end well
    std::atomic<uint32_t> counted;         // PEs whose counters are final, over all rounds of init and finalize
    sync::CentralBarrier central_barrier;  // the bootstrap's barrier

    PeRecord* records() { return reinterpret_cast<PeRecord*>(this + 1); }
    PeAddress* address_blobs() { return reinterpret_cast<PeAddress*>(records() + n_pes); }
};
static_assert(sizeof(JobPage) % alignof(PeRecord) == 0);

inline size_t job_page_bytes(int n_pes, size_t page_bytes = os::page_bytes()) {
    return os::round_up(sizeof(JobPage) + static_cast<size_t>(n_pes) * (sizeof(PeRecord) + sizeof(PeAddress)),
                        page_bytes);
}

// A page for n_pes PEs in new memory, all filled in; *fd is the memory's descriptor. Null on failure, with errno set.
JobPage* create_job_page(int n_pes, int* fd);

}  // namespace heddle::bootstrap
