// The launcher's own children, which as a subreaper include what PEs started and left behind. One thread. Only direct,
// unreaped children are ever listed, so that a number found here cannot meanwhile belong to somebody else's process.
#pragma once

#include <sys/types.h>

#include <vector>

namespace heddle::launcher {

// From now on orphaned descendants become children of this process.
void adopt_orphans();

// True when this process has any child, ended or not. One system call.
bool have_children();

// All children, ended ones included. Reads one file where the kernel lists them, else all of /proc (some ms).
std::vector<pid_t> list_children();

// True when a process is `ancestor`, or descends from it.
bool is_descendant(pid_t pid, pid_t ancestor);

}  // namespace heddle::launcher
