// HEDDLE_STATUS_SIGNAL: a PE that gets the signal prints where it is. Without the setting no handler is installed. The
// handler finds the place that it has interrupted, and wakes a thread of the library's own, which prints. Threads: init
// calls; the handler runs on any.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle::checking {

// Takes the signal that the setting names, once per process. False with the reason in error: when it names none, or one
// that cannot be taken.
bool take_status_signal(char* error, size_t error_bytes);

// The library's threads that this has started.
uint32_t status_threads();

}  // namespace heddle::checking
