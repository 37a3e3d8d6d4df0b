// Joining and leaving a job that a launcher other than oshrun has started (launcher_api.h).
// Which of its PEs share memory: shared_memory.h. Threads: one, at init.
#pragma once

#include <cstddef>

namespace heddle::bootstrap {

// True when the environment names such a launcher, and this is not a program that a PE has started.
bool is_launched();

// True for a PE that a launcher of processes has started, by PMIx or PMI: one that ends PEs by signals. After join.
bool has_process_manager();

// Fills `job` except its nodes. False with the reason in error. The launcher is left when the process exits
// (part_from_launcher), so that shmem_init may follow shmem_finalize. A process that exits otherwise has failed for the
// launcher.
bool join_launched(char* error, size_t error_bytes);

}  // namespace heddle::bootstrap
