// Reports that a PE makes by itself, where no launcher of Heddle's does: where its threads are, when it gets the signal
// of HEDDLE_STATUS_SIGNAL; and the notice of HEDDLE_HANG_S in jobs that oshrun has not started. Threads: any.
#pragma once

#include <cstdint>

namespace heddle::checking {

// To be called by a thread that has waited for long. In jobs that oshrun has not started, prints once that no PE of the
// page came forward for HEDDLE_HANG_S seconds, and where they are.
void tell_if_none_comes_forward(uint64_t now_ns);

// Prints where this PE is: each thread that waits, and otherwise the place (a text of base/place.h, or empty) at which
// the thread that got the signal was interrupted.
void tell_own_place(const char* interrupted_at);

}  // namespace heddle::checking
