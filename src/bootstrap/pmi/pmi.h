// PMI: a client of the process managers that speak PMI-1 or PMI-2: MPICH's and Intel MPI's hydra, Slurm's pmi2, Flux,
// PALS. It needs no library. Contract and threads: bootstrap/launcher_api.h; a get does not wait (get_waits).
//
// Bytes are published as hexadecimal digits, in as many keys as the process manager's longest value makes necessary:
// KEY.PE.PART. The first part begins with the number of bytes. PEs are on one host when they have the same name of the
// host and the same boot of its kernel.
#pragma once

#include "bootstrap/launcher_api.h"

#include <cstdint>

namespace heddle::bootstrap::pmi {

// True when the environment has a way to a process manager: PMI_FD is an open socket, or there is PMI_PORT.
bool is_offered();

// A number that the processes of one host have in common, by which a client without a launcher's help finds peers.
uint64_t identify_host();

extern const LauncherApi launcher;

}  // namespace heddle::bootstrap::pmi
