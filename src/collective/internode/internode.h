// Collectives of teams whose members are on several nodes. On a node the members synchronize through their team segment
// and share memory. Between nodes one member sends short data for all, and every member puts its own long data
// (internode_step.h; docs/decisions/0014, 0032). A reduction combines in the order of reduction_order.h, as on one
// node: the bits are the same wherever the members are.
//
// Threads: one thread of each member, for which the others of its thread group wait. Conditions: node/data_movement.h,
// node/reduce.h.
#pragma once

#include "collective/collective_call.h"
#include "collective/node/kernels.h"

namespace heddle::collective {

class InternodeStep;

// True when `mine` is true on all members. `mine` must have one value on all members of a node.
bool all_agree(CollectiveCall& coll, bool mine);
// True when `mine` is true on all members; members of one node may differ.
bool is_unanimous(CollectiveCall& coll, bool mine);

// The leaders of the nodes wait for each other in a step: all that a collective of no bytes does, so that one of some
// bytes on another node does not wait for ever.
void meet(CollectiveCall& coll, const InternodeStep& step);

// The leaders of the nodes compare their calls in a ring: one control message each, and only leaders wait.
void compare_nodes(CollectiveCall& coll, const CallComparison& mine);

namespace internode {

void broadcast(CollectiveCall& coll, void* dest, const void* source, size_t bytes, int root, bool root_too);
// Gathers the parts of all members, one behind the other. same_size: all parts have that many bytes.
void collect(CollectiveCall& coll, void* dest, const void* source, size_t bytes, bool same_size);

// A block from each member for each member: nelems elements, to_step and from_step bytes apart in dest and in source.
struct Blocks {
    void* dest;
    const void* source;
    size_t nelems, element_bytes;
    size_t to_step, from_step;

    size_t bytes() const { return nelems * element_bytes; }
    // In a member's dest: the block from from_rank. In its source: the block for to_rank.
    char* to(char* dest_there, int from_rank) const {
        return dest_there + static_cast<size_t>(from_rank) * nelems * to_step;
    }
    const char* from(const char* source_there, int to_rank) const {
        return source_there + static_cast<size_t>(to_rank) * nelems * from_step;
    }
};
void alltoall(CollectiveCall& coll, const Blocks& blocks);
void reduce(CollectiveCall& coll, Kernel kernel, Kind type, void* dest, const void* source, size_t nelems,
            size_t element_bytes);
void scan(CollectiveCall& coll, Kernel kernel, Kind type, bool inclusive, void* dest, const void* source, size_t nelems,
          size_t element_bytes);

}  // namespace internode

}  // namespace heddle::collective
