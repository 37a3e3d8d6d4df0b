// oshrun --status and --top: find the jobs of this user that run on this host, and look where the PEs of one are. The
// job page is found in /proc, open in oshrun or in a PE; the job takes no notice. Threads: one.
#pragma once

#include <cstdint>
#include <string>

#include "bootstrap/status_report.h"

namespace heddle::launcher {

// A job that another oshrun, or another launcher, runs on this host.
struct AttachedJob {
    int pid = 0;  // of its oshrun, or else of one of its PEs
    bool has_oshrun = false;
    uint64_t start_ticks = 0;  // of that process
    std::string name;          // "oshrun 123: 4 PEs on this host"
    bootstrap::StatusSource source;

    // Looks again for the processes of the PEs. False when the job has ended here.
    bool refresh();
};

// Finds the job of a process (tell_status). False after lines on stderr, which name the option.
bool attach(const char* option, int pid, AttachedJob* job);

// Prints the report on stdout. pid: an oshrun, or a PE of another launcher's job; 0: the only job. Returns the status
// for exit: 1 after a line on stderr when there is no such job, or several.
int tell_status(int pid);

}  // namespace heddle::launcher
