// A PE's side of a rendezvous (server.h), for programs that no launcher with a protocol of its own has started:
// shmemx_init_uniqueid, and HEDDLE_LAUNCH=env. Contract and threads: bootstrap/launcher_api.h; a get waits (get_waits).
//
// The end of the server's process, and kEnd, end this PE by a message, unless it has finalized. During init they fail
// init instead.
#pragma once

#include "bootstrap/job_page.h"
#include "bootstrap/launcher_api.h"
#include "bootstrap/rendezvous/unique_id.h"

#include <cstdint>

namespace heddle::bootstrap::rendezvous {

// Makes a server for a job of any number of PEs, and its id. False with the reason in error. Any thread.
bool make_id(IdBytes* id, char* error, size_t error_bytes);

// The next join is by this id, whatever the environment says. False, with the reason in error, when the id is none, the
// numbers are wrong, or this process is a PE already and another one.
bool ask_to_join(const IdBytes& id, int pe, int n_pes, char* error, size_t error_bytes);
bool is_asked_to_join();
// The join has failed: the next one is as the environment says.
void drop_request();

// Threads of this process that serve jobs.
uint32_t server_threads();

extern const LauncherApi launcher;

}  // namespace heddle::bootstrap::rendezvous
