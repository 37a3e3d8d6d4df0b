// Reports that a PE makes by itself, where no launcher of Heddle's does. At the signal of HEDDLE_STATUS_SIGNAL it tells
// where its threads are. In jobs that oshrun has not started it gives the notice of HEDDLE_HANG_S, and tells where the
// PEs are when a signal ends the job. Threads: any.
#pragma once

#include <cstdint>

namespace heddle::checking {

// To be called by a thread that has waited for long. In jobs that oshrun has not started, prints once that no PE of the
// page came forward for HEDDLE_HANG_S seconds, and where they are.
void tell_if_none_comes_forward(uint64_t now_ns);

// Prints where this PE is: each thread that waits, and otherwise the place (a text of base/place.h, or empty) at which
// the thread that got the signal was interrupted.
void tell_own_place(const char* interrupted_at);

// To be called before the signal ends this PE. One PE of the page prints where its PEs are, and the others wait for
// that, 3 s at most. Nothing is printed when the job ends for another reason, or no PE has waited for a second. Cost:
// below half a second, which is less than launchers give.
void tell_end(int signal);

}  // namespace heddle::checking
