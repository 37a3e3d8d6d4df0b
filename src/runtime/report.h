// The output of SHMEM_VERSION and SHMEM_INFO at start-up, and of HEDDLE_STATS at the end.
#pragma once

namespace heddle::runtime {

void report_start();

// To be called when this PE's counters are final. If HEDDLE_STATS asks for it, the last PE of the page to call prints
// the counters of all PEs of the page: sum, least and most, and for few PEs those of each.
void report_end();

}  // namespace heddle::runtime
