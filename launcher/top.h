// oshrun --top: a view of a running job in the terminal, anew each second. Reads the job page and /proc; the job takes
// no notice. Threads: one.
#pragma once

namespace heddle::launcher {

// Shows the view until q, the end of the job, or a signal, and leaves the terminal as it was. pid as for tell_status.
// Returns the status for exit: 0; 1 after a line on stderr, without a terminal or a job; 128 and the signal's number.
int watch_job(int pid);

}  // namespace heddle::launcher
