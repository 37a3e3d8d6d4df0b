// Which PEs share memory, in a job that a launcher other than oshrun has started. Threads: one, at init, and one that
// serves the memory until then (os/descriptor_passing.h).
//
// PEs share a node only if they prove it. The first PE that the launcher has started on a host makes the node's memory.
// It hands the memory to the others by a socket or by /proc. The socket also reaches other user, process and mount
// namespaces. The PEs that get neither, or another token in the memory, try again among themselves. In the end a PE may
// be a node of its own.
#pragma once

#include "bootstrap/launcher_api.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace heddle::bootstrap {

// Why a PE cannot have the memory that another PE of its host offers. Errors are those of errno; ESTALE: a file is
// there, but not the memory.
struct Refusal {
    int32_t pe;  // the other one; kNobody: there was none
    int32_t pid, fd;
    int32_t cannot_pass;  // 1: passing_error is the other PE's
    int32_t passing_error;
    int32_t opening_error;  // of /proc/PID/fd/FD
};

// The values that each PE publishes for all others.
struct Place {
    static constexpr int32_t kNobody = -1;

    uint64_t token;  // of its page; PE 0's becomes the job's
    uint64_t heap_bytes;
    uint64_t trace_bytes;  // as the setting says
    uint64_t boot;         // os::hash_of_boot
    int32_t leader;        // the first PE that has its page; kNobody until it has one
    Refusal refusal;
};

// Makes this PE's page, or maps that of another PE, which it then shares. Fills places, by PE. False with the reason in
// error.
bool share_memory(const LauncherJob& started, std::vector<Place>* places, char* error, size_t error_bytes);

// True when PEs of one kernel do not share memory. text: the first two of them, the reason and the cure.
bool describe_split_hosts(const std::vector<Place>& places, char* text, size_t text_bytes);

}  // namespace heddle::bootstrap
