// Processes: dying with the launcher, and what distinguishes jobs and hosts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace heddle::os {

// Opens /dev/null for those of the descriptors 0, 1 and 2 that are closed, as in daemons: what the program reads and
// writes there must not come from, or go to, a socket or the memory of the library.
void hold_standard_descriptors();

enum class Lifeline {
    kHeld,  // the kernel ends this process with the launcher
    kGone,  // the launcher has ended already
    kNone,  // the kernel refuses (errno): neither of the two
};

// Makes the kernel end this process (SIGKILL) when the last write end of the pipe at `path` closes, which only the
// launcher holds. Works through any number of scripts between the two. Where the pipe cannot be opened, as without
// /proc, requires that `launcher` is the parent and has asked for that itself (PR_SET_PDEATHSIG).
Lifeline die_with(const char* path, int launcher);

// die_with by a thread, which waits until the last write end of the pipe fd closes, and then ends the process by _exit.
// For the first process of a process namespace, which no signal of that namespace ends, and for systems without /proc.
// fd may be closed afterwards. A program that replaces this one by exec is not ended.
Lifeline die_with_by_thread(int fd);

// The process namespace of this process, a number of this kernel; 0 when the system does not tell.
uint32_t process_namespace();

// True when the process has ended, even if its parent has not reaped it yet. False when another process may have got
// the number since, and when the number is of another process namespace than this one, or of 0.
bool has_ended(int pid, uint32_t of_namespace);

// A hash of the kernel's boot id: differs between hosts, agrees in all namespaces of one; 0 when it cannot be read.
uint64_t hash_of_boot();

// A hash of bytes, the same on every machine (FNV-1a); `before`: of the bytes in front of them.
constexpr uint64_t kHashOfNothing = 0xcbf29ce484222325;
uint64_t hash_of(std::string_view bytes, uint64_t before = kHashOfNothing);

// Threads of this process, including the library's; 0 when the system does not tell.
uint32_t count_threads();

// Time since this process was made (a program that exec starts is as old as the one before it), up to 10 ms too long; 0
// when the system does not tell.
uint64_t age_ns();

// 64 random bits, unguessable for other processes.
uint64_t random_word();

}  // namespace heddle::os
