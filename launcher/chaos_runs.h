// Many jobs with chaos (--chaos-runs): one oshrun for each seed, one after the other. Threads: one. Holds back what a
// job prints, and shows it where the job fails.
#pragma once

#include "options.h"

namespace heddle::launcher {

// Runs the seeds from chaos_seed on, chaos_runs of them, up to the first that fails: by its status, by --timeout, or,
// with --compare-output, by the lines of its stdout. Tells the command that repeats the failure, and how many have run.
// Returns the status for exit: 0, that of the job that failed, 1 for output that differs, or 128 and the number of a
// signal to oshrun. A job reads standard input from its place on where that is a file, otherwise nothing.
int run_seeds(const Options& options);

}  // namespace heddle::launcher
