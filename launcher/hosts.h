// Jobs on several hosts: the list of hosts, and the launcher of the machine, to which oshrun hands over. Threads: one.
// Launchers are asked what they are; the one that is taken runs as a child (engine_process.h).
#pragma once

#include <string>
#include <vector>

#include "options.h"

namespace heddle::launcher {

// Reads "a:2,b"; the number of a host without one is 0. False after a line on stderr.
bool read_hosts(const char* text, std::vector<Host>* hosts);

// Reads a file with a host in each line, "a:2" or "a slots=2"; "#" begins a comment. False after a line on stderr.
bool read_host_file(const char* path, std::vector<Host>* hosts);

// Runs the first launcher in PATH that works, with arguments made from the options: prterun, mpirun, srun, hydra's
// mpiexec or flux. That of the scheduler that has told the hosts comes first of all. Returns the status for exit: the
// launcher's, that of --timeout or of a signal, or after a line on stderr that of a failure.
int hand_over(const Options& options);

}  // namespace heddle::launcher
