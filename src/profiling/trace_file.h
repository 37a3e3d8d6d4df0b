// The trace of a job as a file: JSON of the Trace Event Format, which Perfetto and chrome://tracing open. A process of
// the format is a PE. Threads: one.
#pragma once

#include "profiling/job_trace.h"

#include <cstdio>

namespace heddle::profiling {

// False when it could not be written, with errno. arrows: of find_arrows.
bool write_trace(const JobTrace& trace, const std::vector<Arrow>& arrows, FILE* file);

}  // namespace heddle::profiling
