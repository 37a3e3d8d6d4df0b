// The report of where the PEs of a job page are, made from what they publish (docs/decisions/0049). The launcher makes
// it, `oshrun --status`, and PEs that another launcher has started. Threads: any, one at a time for a source. What the
// page says is checked: a broken PE makes a wrong line, and nothing worse.
#pragma once

#include "bootstrap/job_page.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace heddle::bootstrap {

// Where a report is made from.
struct StatusSource {
    struct Process {
        int pid = 0;  // of the PE, as the reader sees it; 0: not told
        bool ended = false;
    };

    const JobPage* page = nullptr;
    std::vector<Process> processes;  // by slot: of the PEs to tell of
    int memory_fd = -1;              // the node's memory, which has the values that PEs wait for; -1: not told
    uint64_t now_ns = 0;             // os::now_ns
    uint64_t lines_ns = kLinesNs;    // runs addr2line for so long at most; 0: not at all

    static constexpr uint64_t kLinesNs = 10'000'000'000;
};

// A line for each group of PEs and threads with the same answer, in the order of their first PEs:
//     3 PEs (0-1, 3; pids 11, 12, 14): in shmem_barrier_all #1042 (called at prog+0x12bc, ring.c:42) since 12.1 s
//     PE 2 (pid 13): in shmem_signal_wait_until(flag[3] >= 3, is 2) (called at prog+0x1310, ring.c:57) since 12.2 s
// Lines behind them name cycles, collectives that do not match, and PEs that others wait for.
std::vector<std::string> describe_pes(const StatusSource& source);

// Where one PE is: a line for each of its threads that waits, without its name; or what else there is to tell.
std::vector<std::string> describe_pe(const StatusSource& source, int slot);

// True when some PE waits, and each one that has not ended waits in the library since before that time.
bool all_wait(const StatusSource& source, uint64_t before_ns);
// True when some PE waits in the library since before that time.
bool any_waits(const StatusSource& source, uint64_t before_ns);

// The last calls of a PE, newest first, as far as the ring has them: "shmem_barrier_all 0.3 s ago, ...". Empty unless
// the run is a checked one, in which collectives are recorded.
std::string describe_last_calls(const StatusSource& source, int slot);

}  // namespace heddle::bootstrap
