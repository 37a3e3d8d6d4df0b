// A PE that crashes says so: which signal, at which address, what is there, and where in the program. Handlers of
// SIGSEGV, SIGBUS, SIGFPE and SIGILL are put only where the program, or what it runs in (a sanitizer, an interpreter),
// has none, and one that it sets later takes their place. Behind the message the signal does what it does without: the
// same status, the same core. HEDDLE_CRASH_REPORT=no leaves the signals alone.
#pragma once

namespace heddle::runtime {

// By init, when memory is mapped; a second call does nothing. The stack on which the calling thread's handlers run is
// provided where it has none, so that an overflow of its stack is told, too.
void report_crashes();

}  // namespace heddle::runtime
