// What SHMEM_VERSION and SHMEM_INFO print at start-up, and HEDDLE_STATS at the end.
#pragma once

namespace heddle::runtime {

void report_start();

// The counters of this PE are final: the last PE of the page to say so prints those of all that share it, their sum,
// the least and the most, and where they are few those of each, if HEDDLE_STATS asks for it.
void report_end();

}  // namespace heddle::runtime
