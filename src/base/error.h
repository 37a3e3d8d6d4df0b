// Messages, and the end of a PE that cannot go on. Any thread; never allocates, one write per message.
#pragma once

#include "base/pe_local.h"

namespace heddle::base {

// The number printed in messages; -1 before init.
extern HEDDLE_PE_LOCAL int message_pe;

// Runs before a failed PE exits: tells the launcher who failed. Set by bootstrap; may be null.
extern HEDDLE_PE_LOCAL void (*on_fatal)();

// Prints `heddle [pe 3] FUNCTION: MESSAGE` on stderr.
void complain(const char* function, const char* format, ...) __attribute__((format(printf, 2, 3)));

// complain, then end this PE with exit status 1; the launcher ends the others.
[[noreturn]] void fatal(const char* function, const char* format, ...) __attribute__((format(printf, 2, 3)));

}  // namespace heddle::base
