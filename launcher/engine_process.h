// The launcher that starts the PEs on several hosts, as a child of oshrun: for options that take somebody who watches.
// Threads: one.
#pragma once

#include "options.h"

namespace heddle::launcher {

// How to start it. path, arguments, environment: as for execve. end_s: from a signal that ends the job to SIGTERM,
// which ends the launcher's PEs in any case, and from there to SIGKILL.
struct EngineCommand {
    const char* path;
    char* const* arguments;
    char* const* environment;
    double end_s;
};

// Runs the launcher to its end; returns the status for exit, as a shell tells it. After --timeout the PEs tell where
// they are (bootstrap/deadline.h), and the launcher gets SIGTERM. Signals to oshrun go on to the launcher. Where it has
// not ended end_s after one that ends the job, SIGTERM and then SIGKILL follow. It ends by SIGTERM, too, when oshrun is
// killed.
int run_engine(const EngineCommand& engine, const Options& options);

}  // namespace heddle::launcher
