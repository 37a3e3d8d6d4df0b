// Thread id: the kernel's number of a thread. The C library has gettid and tgkill since glibc 2.30 only, and the
// packages that pip and tar unpack are for older ones. Threads: any. Signal handlers: safe.
#pragma once

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

namespace heddle::os {

// Of the calling thread. Cost: a system call.
inline pid_t thread_id() {
    return static_cast<pid_t>(syscall(SYS_gettid));
}

// Whether the process has a thread of this id.
inline bool has_thread(pid_t process, pid_t thread) {
    return syscall(SYS_tgkill, process, thread, 0) == 0;
}

}  // namespace heddle::os
