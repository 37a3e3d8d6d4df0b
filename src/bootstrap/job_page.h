// The job page: the first bytes of the node's memory, and all that launcher and library share. Made by the launcher
// before any PE runs, or by the node's first PE when the launcher is not oshrun. The page carries the bootstrap
// (barrier, allgather), the request to end the job, and where each PE waits.
//
// Layout: JobPage, then n_pes PeRecords, n_pes PeAddresses and n_pes PeStatuses, rounded up to whole pages
// (job_page_bytes). Begins zeroed. The maker fills magic, n_pes, cores, cpus and token; the launcher may read
// everything at any time. kJobPageMagic changes with the layout.
#pragma once

#include "base/counters.h"
#include "bootstrap/pe_status.h"
#include "os/memfd.h"
#include "sync/central_barrier.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace heddle::bootstrap {

constexpr uint64_t kJobPageMagic = 0x39656c6464656800;  // "heddle9" as bytes, last first
constexpr size_t kCpuWords = 16;
constexpr int kMaxPes = 4096;  // on one node: more than can run, and small enough for tables with a line for each PE

// The environment through which the launcher tells a PE its identity.
constexpr const char* kEnvPe = "HEDDLE_PE";         // the PE's number
constexpr const char* kEnvJobFd = "HEDDLE_JOB_FD";  // descriptor of the node's memory, inherited
// The read end of the launcher's pipe, inherited (os/process.h).
constexpr const char* kEnvLifelineFd = "HEDDLE_LIFELINE_FD";
// The launcher's process and the page's token, PID:TOKEN: for a PE whose inherited descriptors were closed. The
// launcher has the descriptors under the same numbers.
constexpr const char* kEnvJob = "HEDDLE_JOB";

constexpr const char* kEnvHandedOver = "HEDDLE_HANDED_OVER";  // name of the launcher that oshrun asked to start the PEs
// NS:UNIX_NS, the --timeout of a job that oshrun has handed over, and when it ends by the clock of oshrun's host.
constexpr const char* kEnvDeadline = "HEDDLE_DEADLINE";

constexpr uint32_t kEndTold = UINT32_MAX;  // in JobPage::end_told: a PE has told where the PEs are

// The status of a job that would have ended well, but has reported races (HEDDLE_RACES).
constexpr int kStatusRaces = 66;

enum class PeState : uint32_t {
    kAbsent,   // has not called shmem_init (a shell script, or another program)
    kRunning,  // between init and finalize
    kLeaving,  // in its last finalize, or past main: waits for the other PEs
    kFinalized,
};

enum class ExitRequest : uint32_t {
    kNone,
    kGlobalExit,  // shmem_global_exit(status) by exit_pe
    kFatal,       // exit_pe ended itself with a message
    kLauncher,    // the launcher ends the job: no PE needs to wait for others
};

// A request to end the job: the PE, the reason, and the status that the launcher returns. Packed into one word, so that
// it appears at once and whole.
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

// The state of a PE for other PEs and the launcher. Written by its PE only.
struct alignas(64) PeRecord {
    static constexpr size_t kPostWords = 4;
    static constexpr size_t kNameWords = 6;  // 48 bytes: the longest name of the standard has 42

    std::atomic<uint32_t> state;             // PeState
    std::atomic<int32_t> pid;                // of the process that called shmem_init, in its own namespace; 0 before
    std::atomic<uint64_t> post[kPostWords];  // the PE's contribution to the bootstrap's allgather
    // Where the PE waits, published when a wait stops spinning: the function's name, the address that it watches (or
    // 0), and since when (CLOCK_MONOTONIC ns; 0: no wait). In words: a reader during a change sees mixed names, and
    // nothing worse.
    std::atomic<uint64_t> wait_since_ns;
    std::atomic<uint64_t> wait_address;
    std::atomic<uint64_t> wait_name[kNameWords];
    // For leaving PEs (runtime/leaving.h), written while some PE leaves. looks: how often this PE has looked in vain in
    // a wait that only another PE can end. wait_step: the step of a collective that it waits in.
    std::atomic<uint32_t> looks;
    std::atomic<uint32_t> process_namespace;  // of pid (os::process_namespace); 0: unknown
    std::atomic<uint64_t> wait_step;
    // Written when this PE leaves: the steps of SHMEM_TEAM_WORLD that it has begun, and whether it should have called
    // shmem_finalize.
    std::atomic<uint64_t> left;
    base::Counters counters;
    std::atomic<uint32_t> pe;   // its number in the world, plus one; 0: it has not joined
    std::atomic<uint32_t> end;  // how far its process is at its end, of a job with races (runtime/exit.cpp)
};

// The function in which a PE has published that it waits, terminated. A change meanwhile may mix two names; a broken PE
// may have written anything.
using WaitName = std::array<char, PeRecord::kNameWords * sizeof(uint64_t) + 1>;
WaitName wait_name_of(const PeRecord& record);

// Acquire: pairs with Leaving::Leaving and runtime::stop.
PeState state_of(const PeRecord& record);

// A PE's address blob. Written by its PE once, before a barrier; takes no memory until then.
struct alignas(64) PeAddress {
    static constexpr size_t kBytes = 2048 - sizeof(uint64_t);

    uint64_t bytes;  // 0: none
    char data[kBytes];
};
static_assert(sizeof(PeAddress) == 2048);

struct JobPage {
    uint64_t magic;
    uint32_t n_pes;
    uint32_t cores;                    // that the job may use on this node
    uint64_t cpus[kCpuWords];          // those cores, a bit each; empty on machines with more cores than bits
    std::atomic<uint32_t> threads;     // known to run in the job's PEs on this node
    std::atomic<uint32_t> sleepers;    // of these threads, those that sleep in the library
    std::atomic<uint64_t> exit;        // an Exit, packed; the first change from 0 wins
    uint64_t token;                    // of this job, drawn at random
    std::atomic<uint32_t> lost_rails;  // of the network, a bit each (HEDDLE_RAIL_LOSS)
    std::atomic<uint32_t> leaving;     // PEs that wait for the other PEs to leave, too (runtime/leaving.h)
    std::atomic<uint32_t> told;        // 1: a leaving PE has said why the job cannot end well
    std::atomic<uint32_t> hang_told;   // 1: a PE has told that no PE of the page came forward (HEDDLE_HANG_S)
    std::atomic<uint32_t> races;       // that PEs have reported (HEDDLE_RACES)
    // Of the PE that tells where the PEs are when a signal ends the job: its slot, plus one; then kEndTold.
    std::atomic<uint32_t> end_told;
    sync::CentralBarrier central_barrier;  // the bootstrap's barrier

    PeRecord* records() { return reinterpret_cast<PeRecord*>(this + 1); }
    const PeRecord* records() const { return reinterpret_cast<const PeRecord*>(this + 1); }
    PeAddress* address_blobs() { return reinterpret_cast<PeAddress*>(records() + n_pes); }
    PeStatus* statuses() { return reinterpret_cast<PeStatus*>(address_blobs() + n_pes); }
    const PeStatus* statuses() const { return const_cast<JobPage*>(this)->statuses(); }
};
static_assert(sizeof(JobPage) % alignof(PeRecord) == 0);

inline size_t job_page_bytes(int n_pes, size_t page_bytes = os::page_bytes()) {
    return os::round_up(
        sizeof(JobPage) + static_cast<size_t>(n_pes) * (sizeof(PeRecord) + sizeof(PeAddress) + sizeof(PeStatus)),
        page_bytes);
}

// Makes a page for n_pes PEs in new memory, filled in; *fd is the memory's descriptor. Null on failure, with errno set.
JobPage* create_job_page(int n_pes, int* fd);

}  // namespace heddle::bootstrap
