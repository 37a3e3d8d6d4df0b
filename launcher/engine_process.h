// The launcher that starts the PEs on several hosts, as a child of oshrun: for options that take somebody who watches.
// Threads: one.
#pragma once

#include "options.h"

namespace heddle::launcher {

// Runs the launcher to its end; returns the status for exit, as a shell tells it. After --timeout the launcher gets
// SIGTERM, with which it ends its PEs, and SIGKILL when it has not ended in time. Signals to oshrun go on to the
// launcher. It ends by SIGTERM, too, when oshrun is killed. path, arguments, environment: as for execve.
int run_engine(const char* path, char* const* arguments, char* const* environment, const Options& options);

}  // namespace heddle::launcher
