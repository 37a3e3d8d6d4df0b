// The launcher's texts about PEs: how one has ended, where one waits. Threads: one. Reads PeRecords, prints nothing.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "bootstrap/job_page.h"

namespace heddle::launcher {

// "was killed by signal 11 (Segmentation fault)" or "exited with status 3", from waitpid's status.
std::string how_it_ended(int wait_status);

// "PE 3 (pid 4713): in shmem_barrier_all since 12.3 s". pid: its process, as the launcher sees it.
std::string where_it_is(int pe, pid_t pid, bool ended, const bootstrap::PeRecord& record, uint64_t now_ns);

// "; ending the other 3 PEs", or nothing when there are no others.
std::string ending_others(int others);

}  // namespace heddle::launcher
