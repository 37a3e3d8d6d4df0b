// Runs a job whose PEs are threads of this process (library target heddle_threads), so that ThreadSanitizer sees across
// PEs. Static data is not symmetric in such a job; everything else behaves as with processes.
#pragma once

#include <functional>
#include <thread>

namespace heddle::test {

// Runs body(pe) on n_pes threads, each a PE that has not yet called shmem_init; returns when all have ended. cores: how
// many the library takes the node to have; 0: as many as there are.
void run_pes(int n_pes, const std::function<void(int pe)>& body, int cores = 0);

// A further thread of the calling PE. Call between init and finalize; join it before finalize.
std::thread thread_of_pe(std::function<void()> body);

}  // namespace heddle::test
