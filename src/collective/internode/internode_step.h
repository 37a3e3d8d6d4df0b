// A step of a team that spans nodes: how its members talk between nodes (by control messages,
// fabric/endpoint/control_inbox.h), and what they need to know of who is where. Members go by their numbers in the
// team.
//
// Threads: the one of each member that carries out the collective. Nothing here meets on the node, but node_barrier.
#pragma once

#include "collective/collective_call.h"
#include "memory/symmetric.h"
#include "operations/remote.h"

#include <vector>

namespace heddle::collective {

constexpr size_t kMaxLetter = 16 * 1024;

// A number, alike on all members, and ways to send and to read under it. A round tells apart what one member sends
// another in the step.
class InternodeStep {
  public:
    explicit InternodeStep(CollectiveCall& coll)
        : coll_(coll),
          number_(++coll.team.span->steps),
          stream_set_(progress::Fiber::current() ? coll.team.stream_sets.load(std::memory_order_relaxed) : nullptr) {}

    // A member's number in the world.
    int pe(int rank) const { return coll_.pe(rank); }

    // One control message, of at most kMaxLetter. It leaves at once.
    void send(int to_rank, uint32_t round, const void* data, size_t bytes) const;
    // Waits for the control message of a member; returns its size.
    size_t read(int from_rank, uint32_t round, void* data, size_t bytes) const;

    // The same with as many control messages as it takes.
    void send_all(int to_rank, uint32_t round, const std::vector<char>& data) const;
    std::vector<char> read_all(int from_rank, uint32_t round) const;

    // Data straight into place: no copy from 32 KiB on. put may wait for more; deliver goes at once, with what was put
    // before, and tells the member when all of it is there.
    void put(int to_rank, void* dest, const void* source, size_t bytes) const;
    void deliver(int to_rank, uint32_t round, void* dest, const void* source, size_t bytes) const;
    // Waits for what a member delivers.
    void wait_at(int from_rank, uint32_t round) const { read(from_rank, round, nullptr, 0); }
    // What was put or delivered may be overwritten here.
    void done(int to_rank) const;

  private:
    operations::IssueParams issue() const {
        return {.call = coll_.call, .ctx = SHMEM_CTX_DEFAULT, .stream_set = stream_set_};
    }
    uint64_t key(uint32_t round, uint32_t piece) const {
        return coll_.team.span->id ^ (number_ * 0x9e3779b97f4a7c15) ^ (uint64_t{piece} << 33 | uint64_t{round} << 1);
    }
    void post(int to_rank, uint64_t key, const void* data, size_t bytes) const;
    size_t take(int from_rank, uint64_t key, void* data, size_t bytes) const;
    void go(int to_rank) const;

    CollectiveCall& coll_;
    const uint64_t number_;
    // of non-blocking collectives, which any thread carries on; null: the thread's own
    fabric::StreamSet* const stream_set_;
};

inline bool is_leader(const CollectiveCall& coll) {
    return coll.state.rank == 0;
}

inline int leader_here(const CollectiveCall& coll) {
    const team::Span& span = *coll.team.span;
    return span.leader(span.node);
}

inline void node_barrier(CollectiveCall& coll) {
    team::barrier(coll.call, coll.state);
}

// The same object on another member of this node.
inline char* on(const CollectiveCall& coll, int rank, const void* address) {
    return memory::address_on(address, coll.pe(rank));
}

// Calls visit(node) for the others, the next first, so that not all talk to the same one at once.
template <class Visit>
void for_other_nodes(const team::Span& span, Visit visit) {
    for (int i = 1; i < span.n_nodes; ++i) visit((span.node + i) % span.n_nodes);
}

// Calls visit(rank) for the members on a node, in order.
template <class Visit>
void for_members(const team::Span& span, int node, Visit visit) {
    for (int i = 0; i < span.count(node); ++i) visit(span.member(node, i));
}

inline void append(std::vector<char>& to, const void* data, size_t bytes) {
    const char* const from = static_cast<const char*>(data);
    to.insert(to.end(), from, from + bytes);
}

// Leaders tell each other: the data of each node, by its number. Every leader sends about 3 log4(nodes) messages, with
// what it has heard, and receives each node's data once.
std::vector<std::vector<char>> exchange_between_leaders(const CollectiveCall& coll, const InternodeStep& step,
                                                        std::vector<char> mine);

// Calls visit(rank, part) for all members in order, where the data of each node are their parts of so many bytes.
template <class Visit>
void for_parts(const team::Span& span, const std::vector<std::vector<char>>& told, size_t part_bytes, Visit visit) {
    std::vector<const char*> next;
    next.reserve(told.size());
    for (const std::vector<char>& data : told) next.push_back(data.data());
    for (int rank = 0; rank < span.begins[span.n_nodes]; ++rank) {
        const char*& part = next[static_cast<size_t>(span.node_of[rank])];
        visit(rank, part);
        part += part_bytes;
    }
}

}  // namespace heddle::collective
