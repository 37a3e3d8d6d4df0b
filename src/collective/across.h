// Collectives of teams whose members are on several nodes. Within a node the members meet in their room and share
// memory; between nodes the first member of each sends letters and data for all (fabric/mailbox.h). The order in which
// a reduction combines is that of the members within their nodes, and of the nodes as their members come in the team:
// the same bits for the same team on the same nodes, whatever the timing.
//
// One thread of each member, which the others of its crew wait for. Conditions as in move.h and reduce.h.
#pragma once

#include "collective/enter.h"
#include "collective/kernels.h"

namespace heddle::collective {

// True when `mine` was on all members, in a step that the members on this node have begun alike.
bool all_agree(Entered& entered, bool mine);

namespace across {

void broadcast(Entered& entered, void* dest, const void* source, size_t bytes, int root, bool root_too);
// parts[rank] bytes from each member, one behind the other.
void collect(Entered& entered, void* dest, const void* source, size_t bytes);
void alltoall(Entered& entered, void* dest, const void* source, size_t bytes);
void alltoalls(Entered& entered, void* dest, const void* source, size_t to_step, size_t from_step, size_t nelems,
               size_t element_bytes);
void reduce(Entered& entered, Kernel kernel, void* dest, const void* source, size_t nelems, size_t element_bytes);
void scan(Entered& entered, Kernel kernel, bool inclusive, void* dest, const void* source, size_t nelems,
          size_t element_bytes);

}  // namespace across

}  // namespace heddle::collective
