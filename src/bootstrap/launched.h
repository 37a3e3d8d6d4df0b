// Joining a job that another launcher than oshrun has started (launcher_api.h), and leaving it.
//
// Which PEs share a node is proved, not believed: of those that the launcher started on one host the first makes the
// node's memory and tells its process, descriptor and token; who cannot open that memory, or finds another token in it
// (a container), is a node of its own. Then all tell all who leads them: one fence. One thread, at init.
#pragma once

#include <cstddef>

namespace heddle::bootstrap {

// True when the environment says so, and this is not a program that a PE has started.
bool is_launched();

// Fills `job` but for the numbers of the nodes. False with the reason in error. The launcher is left when the process
// exits (part_from_launcher), so that shmem_init may follow shmem_finalize; an end without it is a failure to the
// launcher.
bool join_launched(char* error, size_t error_bytes);

}  // namespace heddle::bootstrap
