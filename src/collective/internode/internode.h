// Collectives of teams whose members are on several nodes. Within a node the members meet in their team segment and
// share memory; between nodes one of them speaks for all where data is short, and every member puts its own where it is
// long (step.h; docs/decisions/0014). A reduction combines in the order of the members' numbers, as on one node: the
// bits are the same wherever the members are.
//
// One thread of each member, which the others of its thread group wait for. Conditions as in move.h and reduce.h.
#pragma once

#include "collective/collective_call.h"
#include "collective/node/kernels.h"

namespace heddle::collective {

// True when `mine` was on all members, in a step that the members on this node have begun alike.
bool all_agree(CollectiveCall& coll, bool mine);
// The same where members on one node may differ, too.
bool is_unanimous(CollectiveCall& coll, bool mine);

// Nodes compare what their leaders show: one control message each, that only the leaders wait for.
void compare_nodes(CollectiveCall& coll, const CallComparison& mine);

namespace internode {

void broadcast(CollectiveCall& coll, void* dest, const void* source, size_t bytes, int root, bool root_too);
// The parts of all members, one behind the other; alike: all are of that many bytes.
void collect(CollectiveCall& coll, void* dest, const void* source, size_t bytes, bool comparison);

// What each member has for each: nelems elements, which lie so many bytes apart in source and in dest.
struct Blocks {
    void* dest;
    const void* source;
    size_t nelems, element_bytes;
    size_t to_step, from_step;

    size_t bytes() const { return nelems * element_bytes; }
    // In a member's dest, the block from a member; in its source, that for one.
    char* to(char* dest_there, int from_rank) const {
        return dest_there + static_cast<size_t>(from_rank) * nelems * to_step;
    }
    const char* from(const char* source_there, int to_rank) const {
        return source_there + static_cast<size_t>(to_rank) * nelems * from_step;
    }
};
void alltoall(CollectiveCall& coll, const Blocks& blocks);
void reduce(CollectiveCall& coll, Kernel kernel, void* dest, const void* source, size_t nelems, size_t element_bytes);
void scan(CollectiveCall& coll, Kernel kernel, bool inclusive, void* dest, const void* source, size_t nelems,
          size_t element_bytes);

}  // namespace internode

}  // namespace heddle::collective
