// The launcher's texts about how PEs end. Where they are: bootstrap/status_report.h. Threads: one. Prints nothing.
#pragma once

#include <sys/types.h>

#include <string>

namespace heddle::launcher {

// "was killed by signal 11 (Segmentation fault)" or "exited with status 3", from waitpid's status.
std::string how_it_ended(int wait_status);

// "; ending the other 3 PEs", or nothing when there are no others.
std::string ending_others(int others);

}  // namespace heddle::launcher
