// Messages, and the end of a PE after a fatal error. Threads: any. Never allocates; one write for each message.
//
// A message ends with the place where the program called the library, if the stack shows it: " (called at
// prog+0x1234)". The last message of a PE also has the line of source (base/place.h, base/source_line.h).
#pragma once

#include "base/pe_local.h"

namespace heddle::base {

// The PE number in messages; -1 before init.
extern HEDDLE_PE_LOCAL int message_pe;

// Runs before a failed PE exits; tells the launcher which PE failed. Set by bootstrap; may be null.
extern HEDDLE_PE_LOCAL void (*on_fatal)();

// Prints `heddle [pe 3] FUNCTION: MESSAGE (called at PLACE)` on stderr.
void complain(const char* function, const char* format, ...) __attribute__((format(printf, 2, 3)));
// Prints `heddle [pe 3] SUBJECT: MESSAGE`, without a place: for events that no call of the program has caused.
void report(const char* subject, const char* format, ...) __attribute__((format(printf, 2, 3)));

// complain, then exit with status 1; the launcher ends the other PEs. With HEDDLE_ABORT=1 the PE aborts instead, for
// debuggers and core files.
[[noreturn]] void fatal(const char* function, const char* format, ...) __attribute__((format(printf, 2, 3)));

}  // namespace heddle::base
