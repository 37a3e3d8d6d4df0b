// Exchanges: alltoallv, and alltoall and alltoallv among the neighbors that each member lists. A member receives its
// blocks itself: on a node it copies them out of the sources of others, between nodes it says where they belong. Its
// dest must thus be ready when the member calls, not before, as in MPI.
//
// The first run of an exchange finds the plan: whose blocks are where, in which order, and how they travel. On the node
// the members show each other tables of their blocks, and compare them. A further run takes the plan from there: it
// waits for neighbors alone, and checks nothing again (docs/decisions/0060).
//
// Threads: one of each member; one run of an exchange at a time.
#pragma once

#include "collective/collective_call.h"
#include "collective/internode/remote_blocks.h"

#include <heddle/request.h>
#include <optional>
#include <vector>

namespace heddle::collective {

// The arguments of the interface. kNeighborAlltoall has neither counts nor offsets: block i is the i-th.
struct ExchangeArguments {
    ExchangeKind kind;
    void* dest;
    const size_t *dest_counts, *dest_offsets;
    const void* source;
    const size_t *source_counts, *source_offsets;
    size_t element_bytes;            // of kNeighborAlltoall: of a block
    const int* neighbors = nullptr;  // of kAlltoallv: none, for all members are
    size_t nneighbors = 0;
};

class Exchange {
  public:
    // Copies the arguments. Ends the PE when they are wrong.
    Exchange(const Call& call, const team::Team& team, const ExchangeArguments& arguments);
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;

    // Carries it out, in the team or an instance of it.
    void run(const Call& call, const Group& group);
    // Of one that is posted: tells the observer which buffers are in use from here on.
    void tell_of_post(const Call& call) const;
    // What this member sends to other nodes, in bytes.
    size_t bytes_to_other_nodes() const { return remote_.sent(); }

    bool is_kept = false;  // by a plan, which runs it again

  private:
    // What a member copies from another one's source on this node.
    struct Copy {
        int member;  // of the node
        char* to;
        const char* from;
        size_t bytes;
    };

    void add_all(const Call& call, const team::Team& team, const ExchangeArguments& arguments);
    void require_blocks(const Call& call) const;
    void require_disjoint_blocks(const Call& call) const;
    void resolve(CollectiveCall& coll);
    void match(CollectiveCall& coll, int member, const std::vector<ExchangeBlock>& mine,
               const std::vector<TableEntry>& theirs);
    void copy(CollectiveCall& coll, std::optional<uint32_t> ready) const;

    ExchangeKind kind_;
    char* dest_;
    const char* source_;
    size_t element_bytes_;
    size_t bytes_ = 0;                   // what this member sends
    std::vector<ExchangeBlock> blocks_;  // by rank, this member's successor first; those of one rank as they are listed
    int64_t runs_ = 0;
    // Of the plan:
    std::vector<Copy> copies_;
    std::vector<int> members_;  // of this node, who exchange blocks with this one
    internode::RemoteBlocks remote_;
};

// Blocking; and posted to *req. Both return 0: an error ends the PE with a message.
int exchange(const Call& call, shmem_team_t handle, const ExchangeArguments& arguments);
int post_exchange(const Call& call, shmem_team_t handle, const ExchangeArguments& arguments, shmemx_request_t* req);

}  // namespace heddle::collective
