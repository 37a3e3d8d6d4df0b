// Publishes where threads of this PE sleep, for reports (bootstrap/pe_status.h, docs/decisions/0049). Started by
// init.
//
// A wait that falls asleep takes an entry, with function, object, comparison and value. A tenth of a second later, at
// its next look, the place of the call follows. With it come the number of the collective and the last write to the
// value, from a tool that knows it. Once a second or less these are looked for again. So are the holder of a lock and
// the PEs that wait for this one. Threads: any. Cost: nothing while a wait spins; 0.2 us when it falls asleep;
// microseconds for the walk over the stack, once in a wait that lasts.
#pragma once

#include "progress/wait_policy.h"

#include <cstddef>

namespace heddle::checking {

void publish_wait(progress::SleepingWait& wait);
void withdraw_wait(progress::SleepingWait& wait);

// Lets the waits of this policy be published, and takes the signals at which this PE tells of them (status_signal.h,
// end_signals.h). False with the reason in error.
bool start_status(progress::WaitPolicy& policy, char* error, size_t error_bytes);

}  // namespace heddle::checking
