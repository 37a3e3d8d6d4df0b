// The launcher's children: its own, and orphans of the PEs, which it adopts as a subreaper. Threads: one. Only direct,
// unreaped children are listed, so that no number found here can belong to another process meanwhile.
#pragma once

#include <sys/types.h>

#include <vector>

namespace heddle::launcher {

// Makes orphaned descendants children of this process.
void adopt_orphans();

// True when this process has any child, ended or not. One system call.
bool have_children();

// All children, including ended ones. Reads one file if the kernel lists children, otherwise all of /proc (some ms).
std::vector<pid_t> list_children();

// The process that is `ancestor` or descends from it, and has this number in its own process namespace; 0: there is
// none. Reads three files without such namespaces, otherwise all of /proc (some ms).
pid_t find_descendant(pid_t number, pid_t ancestor);

}  // namespace heddle::launcher
