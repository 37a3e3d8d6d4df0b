// What the machine allows this user: processes and open files. One thread; changes this process's file limit only.
#pragma once

#include <sys/resource.h>

#include <string>

namespace heddle::launcher {

// Raises the soft limit of open files to the hard one and returns what it was, which the PEs get back.
rlimit raise_file_limit();

// Empty when `pes` PEs may be possible (other processes of the user count too, so starting may still fail); else what
// stands against it.
std::string limit_below(int pes);

}  // namespace heddle::launcher
