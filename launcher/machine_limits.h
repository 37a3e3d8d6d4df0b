// The machine's limits for this user: processes and open files. Threads: one. Changes only this process's limit of
// files.
#pragma once

#include <sys/resource.h>

#include <string>

namespace heddle::launcher {

// Raises the soft limit of open files to the hard one. Returns the limit before, which the PEs get.
rlimit raise_file_limit();

// Empty when `pes` PEs may be possible; otherwise the limit that forbids it. all_read: a PE has a pipe for its input.
// Other processes of the user count, too, so that starting may still fail.
std::string limit_below(int pes, bool all_read);

}  // namespace heddle::launcher
