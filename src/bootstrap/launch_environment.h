// Launch environment: what the variables of launchers other than oshrun say about this process. They are inherited:
// a program that a PE starts finds those of its PE, and is none. A PE therefore leaves a mark in its environment, made
// of all of these variables. A descendant finds the mark and unchanged variables; a launcher in between changes some.
// Threads: one, at init.
#pragma once

#include "bootstrap/reason.h"

#include <cstddef>

namespace heddle::bootstrap {

// The number in the environment variable, 0 or more; -1: there is none.
long env_number(const char* name);
// As env_number, from low to high; false with the reason when it is none of these.
bool read_env_number(const char* name, long low, long high, long* value, const Reason& reason);

// True when the variables are those of a PE that has started this process, directly or not.
bool is_started_by_pe();
// Marks the environment of this PE for the programs that it starts.
void mark_environment();

// The hosts of the allocation by Slurm in which this process is, as Slurm writes them; null: it is in none.
const char* slurm_hosts();
// True in an instance of Flux.
bool has_flux();

// True when a launcher says that it has started more than one process, and this one is among them. So it is, too, where
// the environment has nothing and a launcher's process is above this one, with several children. error: a line that
// names launcher, variable and cure. With one child, which may be one of several in a moment or on another host, a line
// on stderr tells. False for what an interactive shell of the job has started, and for what a PE has, as the mappings
// of the processes between tell. The lines name the first of them whose mappings may not be read, or the parent that
// /proc hides.
bool claims_several_pes(char* error, size_t error_bytes);

// True in one of several processes whose variables say that they are several: in the first, or in the second where the
// first cannot know. launch: launcher and variable. For oshrun, which starts a job of its own in each.
bool tells_for_several(char* launch, size_t launch_bytes);

// The socket that the environment variable PMI_FD names, as a process manager hands it to what it starts; -1: none, or
// not open in this process.
int inherited_pmi_socket();

}  // namespace heddle::bootstrap
