// oshrun --status: finds the jobs of this user that run on this host, and reports where the PEs of one are. The job
// page is found in /proc, open in oshrun or in a PE; the job takes no notice. Threads: one.
#pragma once

namespace heddle::launcher {

// Prints the report on stdout. pid: an oshrun, or a PE of another launcher's job; 0: the only job. Returns the status
// for exit: 1 after a line on stderr when there is no such job, or several.
int tell_status(int pid);

}  // namespace heddle::launcher
