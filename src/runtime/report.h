// What SHMEM_VERSION and SHMEM_INFO print at start-up.
#pragma once

namespace heddle::runtime {

void report_start();

}  // namespace heddle::runtime
