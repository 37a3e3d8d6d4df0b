// Crash reports: a PE that crashes reports the signal, the address, what is there, and the place in the program.
// Handlers of SIGSEGV, SIGBUS, SIGFPE and SIGILL are installed only where neither the program nor its runtime (a
// sanitizer, an interpreter) has one. A handler that the program installs later replaces them. After the message the
// signal has its usual effect: the same status, the same core. HEDDLE_CRASH_REPORT=no installs no handler.
#pragma once

namespace heddle::runtime {

// Installs the handlers; called by init when memory is mapped, and once per process. Also gives the calling thread a
// stack for its handlers if it has none, so that an overflow of its stack is reported.
void report_crashes();

}  // namespace heddle::runtime
