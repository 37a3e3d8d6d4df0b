// Processes: dying with the launcher, and what tells one job from another.
#pragma once

#include <cstdint>

namespace heddle::os {

enum class Lifeline {
    kHeld,  // the kernel ends this process with the launcher
    kGone,  // the launcher is gone already
    kNone,  // the kernel refuses, see errno: neither
};

// From now on the kernel ends this process (SIGKILL) when the last write end of the pipe at `path` closes, which only
// the launcher holds. Works at any depth of scripts between the two. Where the pipe cannot be opened, as without /proc,
// it is enough that `launcher` is the parent, and has asked for that itself (PR_SET_PDEATHSIG).
Lifeline die_with(const char* path, int launcher);

// Whether the process is gone, or is no more than what its parent has not asked for yet. False for a number that
// another process may have got since.
bool has_ended(int pid);

// Threads of this process, the library's too; 0 when that cannot be told.
uint32_t count_threads();

// 64 bits that nobody can guess.
uint64_t random_word();

}  // namespace heddle::os
