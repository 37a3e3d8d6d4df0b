// The start-up output of SHMEM_VERSION and SHMEM_INFO.
#pragma once

namespace heddle::runtime {

void report_start();

}  // namespace heddle::runtime
