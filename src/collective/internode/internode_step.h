// InternodeStep: one step of a team that spans nodes. Its members exchange control messages between nodes
// (fabric/endpoint/control_inbox.h), and put data. Members go by their ranks in the team.
//
// Threads: the one of each member that carries out the collective, or the threads of its group, with a step object
// each. What one thread of a group sends is in its own stream; any of them may read what comes. Only node_barrier
// synchronizes the members of a node.
#pragma once

#include "collective/collective_call.h"
#include "fabric/endpoint/control_inbox.h"
#include "memory/symmetric.h"
#include "operations/remote.h"

#include <vector>

namespace heddle::collective {

constexpr size_t kMaxControlBytes = 16 * 1024;

// What the members of a step carry out. kSync: barriers and the like.
enum class StepKind : uint8_t {
    kSync,
    kBroadcast,
    kCollect,
    kFcollect,
    kAlltoall,
    kReduce,
    kInclusiveScan,
    kExclusiveScan,
    kExchange
};

// The stream set of what is posted, which any thread carries on, and of its share; null: the calling thread's own.
inline fabric::StreamSet* stream_set_of(const CollectiveCall& coll) {
    if (!progress::Fiber::current())
        return nullptr;
    const fabric::StreamSetList* list = &coll.team.stream_sets;
    const team::Helper* helper = coll.team.helpers;
    for (int share = coll.thread_group.thread(); share > 0; --share, helper = helper->next) list = &helper->stream_sets;
    return list->first.load(std::memory_order_relaxed);
}

// A number, alike on all members, and ways to send and to read under it. A round tells apart what one member sends
// another in the step. All messages name the sender's call: its kind and bytes. A PE that waits for a message ends when
// one of another call has come, whatever its round: the members of a step with unlike calls may wait for each other.
class InternodeStep {
  public:
    // bytes: what `nelems` elements are; 0 where members may pass different ones.
    explicit InternodeStep(CollectiveCall& coll, StepKind kind = StepKind::kSync, size_t bytes = 0)
        : coll_(coll), number_(++coll.team.span->steps), call_(call_of(kind, bytes)), stream_set_(stream_set_of(coll)) {
        if (number_ % team::Span::kStepsAhead == 0)
            catch_up();
    }

    // One step of all threads of a group, each of which calls. Some of them share the member's part: `shared` bytes, to
    // other nodes, go on the channels of as many.
    static InternodeStep of_threads(CollectiveCall& coll, StepKind kind, size_t bytes, size_t shared) {
        const int threads = coll.thread_group.size();
        if (threads == 1)
            return InternodeStep(coll, kind, bytes);
        coll.thread_group.by_one([&] { const InternodeStep begun(coll, kind, bytes); });
        return InternodeStep(coll, call_of(kind, bytes), sharers_of(shared, threads));
    }
    size_t sharers() const { return sharers_; }
    // The calling thread's number among the sharers; as many as these or more: it shares nothing.
    size_t sharer() const { return static_cast<size_t>(coll_.thread_group.thread()); }
    // True for the sharer that does what is not divided, or part `index` of what is divided in whole parts.
    bool is_mine(size_t index) const { return index % sharers_ == sharer(); }
    // The calling thread's part of a count, in whole units.
    ThreadGroup::Share share_of(size_t count, size_t unit) const {
        return coll_.thread_group.share_of(count, unit, static_cast<int>(sharers_));
    }

    // A call as messages name it (fabric::ControlKey): the kind above 56 bits of bytes.
    static constexpr int kKindShift = 56;
    static constexpr uint64_t call_of(StepKind kind, size_t bytes) {
        return static_cast<uint64_t>(kind) << kKindShift | (bytes & ((uint64_t{1} << kKindShift) - 1));
    }

    // A member's number in the world.
    int pe(int rank) const { return coll_.pe(rank); }

    // One control message, of at most kMaxControlBytes. It leaves at once.
    void send(int to_rank, uint32_t round, const void* data, size_t bytes) const;
    // Waits for the control message of a member, which has exactly `bytes`; another length ends the PE.
    void read(int from_rank, uint32_t round, void* data, size_t bytes) const;
    // Waits for the control message of a member, and returns its length, which the caller compares with what it
    // expects. Of a message longer than `bytes` nothing is copied.
    size_t read_any(int from_rank, uint32_t round, void* data, size_t bytes) const;
    // Ends the PE unless a member has sent as many bytes as this one expects: the member has passed another nelems, or
    // is in another collective.
    void require_length(int from_rank, size_t bytes, size_t expected) const;

    // As many control messages as the data takes, and the data that a member has sent so.
    void send_all(int to_rank, uint32_t round, const std::vector<char>& data) const;
    std::vector<char> read_all(int from_rank, uint32_t round) const;

    // Data straight into place: no copy from 32 KiB on. put may wait for more; deliver goes at once, with what was put
    // before, and tells the member when all of it is there.
    void put(int to_rank, void* dest, const void* source, size_t bytes) const;
    void deliver(int to_rank, uint32_t round, void* dest, const void* source, size_t bytes) const;
    // Tells a member that all is there that was put to it, so many bytes.
    void tell_put(int to_rank, uint32_t round, size_t bytes) const { send(to_rank, round, &bytes, sizeof bytes); }
    // Waits for what the threads of a member deliver, or tell of: `bytes` in all, and parts of no other sum. More ends
    // the PE.
    void wait_at(int from_rank, uint32_t round, size_t bytes) const;
    // What was put or delivered may be overwritten here.
    void done(int to_rank) const;

  private:
    // Of the step that another thread of the group has begun.
    InternodeStep(CollectiveCall& coll, uint64_t call, int sharers)
        : coll_(coll), number_(coll.team.span->steps), call_(call), stream_set_(stream_set_of(coll)) {
        sharers_ = static_cast<size_t>(sharers);
    }

    operations::IssueParams issue() const {
        return {.call = coll_.call, .ctx = SHMEM_CTX_DEFAULT, .stream_set = stream_set_};
    }
    // A piece counts modulo 2^16: the pieces of a round are read in the order in which they were sent.
    fabric::ControlKey key(uint32_t round, size_t piece) const {
        return {coll_.team.span->id, number_, round, static_cast<uint16_t>(piece), call_};
    }
    void post(int to_rank, const fabric::ControlKey& key, const void* data, size_t bytes) const;
    size_t take(int from_rank, const fabric::ControlKey& key, void* data, size_t bytes) const;
    void go(int to_rank) const;
    // Ends the PE: a message has come that it does not read.
    [[noreturn]] void end_by(const fabric::ControlInbox::Stray& stray) const;
    void catch_up() const;

    CollectiveCall& coll_;
    const uint64_t number_;  // of the step, among those of the team
    const uint64_t call_;
    fabric::StreamSet* const stream_set_;  // stream_set_of
    size_t sharers_ = 1;                   // the group's first threads
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

// A symmetric object on another member of this node.
inline char* on(const CollectiveCall& coll, int rank, const void* address) {
    return memory::address_on(address, coll.pe(rank));
}

// Calls visit(node) for the other nodes, the next first, so that not all send to the same node at once.
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

// The leaders exchange the data of their nodes; returns the data by node. Every leader sends about 3 log4(nodes)
// messages, with all that it has received so far, and receives each node's data once.
std::vector<std::vector<char>> exchange_between_leaders(const CollectiveCall& coll, const InternodeStep& step,
                                                        std::vector<char> mine);

// Calls visit(rank, part) for all members in order, where the data of each node are their parts of so many bytes. Ends
// the PE where a node has sent more or fewer.
template <class Visit>
void for_parts(const InternodeStep& step, const team::Span& span, const std::vector<std::vector<char>>& of_nodes,
               size_t part_bytes, Visit visit) {
    std::vector<const char*> next;
    next.reserve(of_nodes.size());
    for (int node = 0; node < span.n_nodes; ++node) {
        const std::vector<char>& data = of_nodes[static_cast<size_t>(node)];
        step.require_length(span.leader(node), data.size(), static_cast<size_t>(span.count(node)) * part_bytes);
        next.push_back(data.data());
    }
    for (int rank = 0; rank < span.begins[span.n_nodes]; ++rank) {
        const char*& part = next[static_cast<size_t>(span.node_of[rank])];
        visit(rank, part);
        part += part_bytes;
    }
}

}  // namespace heddle::collective
