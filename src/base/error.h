// Messages, and the end of a PE that cannot go on. Any thread; never allocates, one write per message.
//
// A message ends with the place where the program called the library, as far as the stack tells it: " (called at
// prog+0x1234)", in a PE's last message with the line of source, too (base/place.h, base/source_line.h).
#pragma once

#include "base/pe_local.h"

namespace heddle::base {

// The number printed in messages; -1 before init.
extern HEDDLE_PE_LOCAL int message_pe;

// Runs before a failed PE exits: tells the launcher who failed. Set by bootstrap; may be null.
extern HEDDLE_PE_LOCAL void (*on_fatal)();

// Prints `heddle [pe 3] FUNCTION: MESSAGE (called at PLACE)` on stderr.
void complain(const char* function, const char* format, ...) __attribute__((format(printf, 2, 3)));
// The same of something that no call of the program has to do with: without a place.
void report(const char* subject, const char* format, ...) __attribute__((format(printf, 2, 3)));

// complain, then end this PE with exit status 1; the launcher ends the others. With HEDDLE_ABORT=1 it ends by abort
// instead, for debuggers and core files, and the launcher sees that.
[[noreturn]] void fatal(const char* function, const char* format, ...) __attribute__((format(printf, 2, 3)));

}  // namespace heddle::base
