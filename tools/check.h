// heddle-info --check: a job of tools/check_pe.c, which tests each pair of nodes. Threads: one.
#pragma once

namespace heddle::tools {

// Starts the job by this installation's oshrun, with its options; without any it has two PEs on this host. Returns the
// status for exit: 0, or 1 after a line that says what is wrong. limit_s: seconds for the whole job.
int check(char** options, double limit_s);

}  // namespace heddle::tools
