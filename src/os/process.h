// Processes: dying with the launcher, and what tells one job from another.
#pragma once

#include <cstdint>

namespace heddle::os {

// From now on the kernel ends this process (SIGKILL) when the last write end of the pipe behind `lifeline` closes,
// which only the launcher holds. Works at any depth of scripts between the two. False when the kernel refuses, or when
// the launcher is gone already.
bool die_with(int lifeline);

// Whether the process is gone, or is no more than what its parent has not asked for yet. False for a number that
// another process may have got since.
bool has_ended(int pid);

// The launcher is gone.
bool has_hung_up(int lifeline);

// Threads of this process, the library's too; 0 when that cannot be told.
uint32_t count_threads();

// 64 bits that nobody can guess.
uint64_t random_word();

}  // namespace heddle::os
