// Broadcast, collect and alltoall of teams that span nodes (internode.h).
//
// Threads: one of each member, or the threads of its group: what is long is divided among its sharers, and each sends
// its share in its own stream. A thread that leaves long data in place until the network has sent it waits for that
// before it returns.
#include "base/error.h"
#include "collective/internode/internode.h"
#include "collective/internode/internode_step.h"
#include "collective/internode/schedule.h"
#include "collective/node/copy.h"

#include <algorithm>
#include <cstring>

namespace heddle::collective::internode {

namespace {

// The route of a broadcast from node to node, at one node's speaker (the root or the node's leader): one parent,
// several children.
struct Route {
    int parent = -1;
    std::vector<int> children;
    size_t piece = 0;  // bytes that are sent together
};

// A binomial tree over the nodes, counted from the root's. For data so long that every node is busy with some piece
// most of the time: a chain, in which each node sends everything once.
Route find_route(const team::Span& span, int root, size_t bytes) {
    constexpr size_t kPieceBytes = 256 * 1024;
    const int n_nodes = span.n_nodes, root_node = span.node_of[root];
    const int state = (span.node - root_node + n_nodes) % n_nodes;
    const auto speaker = [&](int of) { return of == 0 ? root : span.leader((root_node + of) % n_nodes); };
    Route route;
    const bool chain = n_nodes > 2 && bytes / kPieceBytes >= static_cast<size_t>(n_nodes);
    route.piece = chain ? kPieceBytes : bytes;
    if (chain) {
        if (state != 0)
            route.parent = speaker(state - 1);
        if (state + 1 < n_nodes)
            route.children.push_back(speaker(state + 1));
        return route;
    }
    const BinomialTree tree = binomial_tree(n_nodes, state);
    if (tree.parent >= 0)
        route.parent = speaker(tree.parent);
    for (const int child : tree.children) route.children.push_back(speaker(child));
    return route;
}

// Each thread copies its share, of a member's whole data.
void copy_share(const CollectiveCall& coll, void* to, const char* from, size_t bytes) {
    const ThreadGroup::Share share = coll.thread_group.share_of(bytes, ThreadGroup::kLineBytes);
    if (share.size() != 0)
        memmove(static_cast<char*>(to) + share.begin, from + share.begin, share.size());
}

}  // namespace

// Data goes from speaker to speaker along the route; on each node the members then copy from their speaker.
void broadcast(CollectiveCall& coll, void* dest, const void* source, size_t bytes, int root, bool root_too) {
    const InternodeStep step = InternodeStep::of_threads(coll, StepKind::kBroadcast, bytes, bytes);
    if (bytes == 0)
        return meet(coll, step);
    const team::Span& span = *coll.team.span;
    const bool root_here = span.node == span.node_of[root];
    const int speaker = root_here ? root : leader_here(coll);
    const char* const from = root_here ? on(coll, root, source) : on(coll, speaker, dest);
    Route route;
    if (coll.rank() == speaker) {
        route = find_route(span, root, bytes);
        const bool whole = bytes / route.piece >= step.sharers();  // a sharer passes on whole pieces
        uint32_t round = 0;
        for (size_t at = 0; at < bytes; at += route.piece, ++round) {
            const size_t piece = std::min(route.piece, bytes - at);
            if (whole && !step.is_mine(round))
                continue;
            const auto receive = [&] {
                if (route.parent >= 0)
                    step.wait_at(route.parent, round, piece);
            };
            whole ? receive() : coll.thread_group.by_one(receive);
            const ThreadGroup::Share share =
                whole ? ThreadGroup::Share{0, piece} : step.share_of(piece, ThreadGroup::kLineBytes);
            if (share.size() == 0)
                continue;
            for (const int child : route.children)
                step.deliver(child, round, static_cast<char*>(dest) + at + share.begin, from + at + share.begin,
                             share.size());
        }
    }
    coll.barrier_here();
    if ((root_too || coll.rank() != root) && from != dest)
        copy_share(coll, dest, from, bytes);
    for (const int child : route.children) step.done(child);
    coll.barrier_here();
}

namespace {

// Collect: the parts of a node with few bytes go in control messages from leader to leader. The parts of other nodes go
// straight into the leaders' dest: long ones from their member, the rest from its leader.
constexpr size_t kShortNode = 8 * 1024;
static_assert(kShortNode <= team::Span::kShortBytes);
constexpr size_t kLongPart = 4 * 1024;

// What leaders know of all members' parts.
struct Parts {
    std::vector<size_t> bytes;   // of each member
    std::vector<size_t> offset;  // by rank, and the end

    size_t part(int rank) const { return bytes[static_cast<size_t>(rank)]; }
    size_t at(int rank) const { return offset[static_cast<size_t>(rank)]; }
    // Of the parts of a node, or SIZE_MAX where the sizes that others have sent add up to more.
    size_t sum(const team::Span& span, int node) const {
        size_t sum = 0;
        for_members(span, node, [&](int rank) { sum += std::min(part(rank), SIZE_MAX - sum); });
        return sum;
    }
    bool is_long(const team::Span& span, int node) const { return sum(span, node) > kShortNode; }
    // True when the member, on a node that is long, delivers its part itself.
    bool goes_alone(const team::Span& span, int rank) const {
        return rank == span.leader(span.node_of[rank]) || part(rank) >= kLongPart;
    }
};

// What a leader tells a member: the bytes of all parts, the offset of the member's own, and whether any node, and this
// one, is long.
struct MemberInfo {
    size_t total, offset;
    bool any_long, here_long;
};

class Collecting {
  public:
    // parts: one object for all threads of the group.
    Collecting(CollectiveCall& coll, const InternodeStep& step, Parts& parts, void* dest, const void* source)
        : coll_(coll),
          span_(*coll.team.span),
          step_(step),
          dest_(static_cast<char*>(dest)),
          source_(static_cast<const char*>(source)),
          parts_(parts) {}

    // A leader learns the sizes of all parts, and receives the short parts. here: the sizes of the members on this
    // node. same_size: all parts have one size.
    void learn(const std::vector<size_t>& here, bool same_size) {
        parts_.bytes.assign(static_cast<size_t>(coll_.size()), here[0]);
        std::vector<char> mine;
        if (!same_size)
            append(mine, here.data(), here.size() * sizeof(size_t));
        for (size_t i = 0; i < here.size(); ++i)
            parts_.bytes[static_cast<size_t>(span_.member(span_.node, static_cast<int>(i)))] = here[i];
        if (!parts_.is_long(span_, span_.node))
            for_members(span_, span_.node,
                        [&](int rank) { append(mine, on(coll_, rank, source_), parts_.part(rank)); });
        std::vector<std::vector<char>> of_nodes(static_cast<size_t>(span_.n_nodes));
        if (!same_size || long_nodes() < span_.n_nodes)
            of_nodes = exchange_between_leaders(coll_, step_, std::move(mine));
        if (!same_size)
            read_sizes(of_nodes);
        size_t total = 0;
        for (const size_t bytes : parts_.bytes) {
            parts_.offset.push_back(total);
            total += std::min(bytes, SIZE_MAX - total);
        }
        parts_.offset.push_back(total);
        require_room(total);
        read_short(of_nodes, !same_size);
    }

    // Ends the PE unless there is symmetric memory at dest for the parts of all members, so many bytes: other PEs have
    // said how many.
    void require_room(size_t total) const {
        size_t room = 0;
        for (const memory::SymmetricRegion* region : {&memory::symmetric->heap, &memory::symmetric->data})
            if (region->holds(dest_))
                room = region->bytes_from(dest_);
        if (total > room)
            base::fatal(
                coll_.call.function,
                "the parts of all members of %s are %zu bytes, and there are %zu bytes of symmetric memory from "
                "dest %p on: right would be a dest with room for the parts of all members",
                name_of(coll_.team).data(), total, room, static_cast<void*>(dest_));
    }

    // Calls visit(info) for each member on this node, in order.
    template <class Visit>
    void for_each_member(Visit visit) const {
        MemberInfo info = {parts_.offset.back(), 0, long_nodes() > 0, parts_.is_long(span_, span_.node)};
        for_members(span_, span_.node, [&](int rank) {
            info.offset = parts_.at(rank);
            visit(info);
        });
    }

    // On a long node: each member delivers its long part to the other leaders, and copies its part to its own leader.
    // The leader also puts the short parts of the others.
    void deliver(const MemberInfo& info, size_t bytes) const {
        char* const there = on(coll_, leader_here(coll_), dest_) + info.offset;
        if (there != source_)
            copy_share(coll_, there, source_, bytes);
        if (!is_leader(coll_) && bytes < kLongPart)
            return;
        // The first sharer has a share unless there is none, and what it puts is told of with its share.
        const ThreadGroup::Share share = step_.share_of(bytes, ThreadGroup::kLineBytes);
        if (share.size() == 0 && !step_.is_mine(0))
            return;
        for_other_nodes(span_, [&](int node) {
            const int leader = span_.leader(node);
            if (is_leader(coll_) && step_.is_mine(0))
                for_members(span_, span_.node, [&](int rank) {
                    if (!parts_.goes_alone(span_, rank))
                        step_.put(leader, dest_ + parts_.at(rank), on(coll_, rank, source_), parts_.part(rank));
                });
            step_.deliver(leader, kDelivered, dest_ + info.offset + share.begin, source_ + share.begin, share.size());
        });
        for_other_nodes(span_, [&](int node) { step_.done(span_.leader(node)); });
    }
    // A leader waits for all parts that are delivered to it.
    void wait_at() const {
        for_other_nodes(span_, [&](int node) {
            if (parts_.is_long(span_, node))
                for_members(span_, node, [&](int rank) {
                    if (parts_.goes_alone(span_, rank))
                        step_.wait_at(rank, kDelivered, parts_.part(rank));
                });
        });
    }

  private:
    static constexpr uint32_t kDelivered = 1000;  // beyond the rounds of exchange_between_leaders

    int long_nodes() const {
        int count = 0;
        for (int node = 0; node < span_.n_nodes; ++node) count += parts_.is_long(span_, node);
        return count;
    }
    void read_sizes(const std::vector<std::vector<char>>& of_nodes) {
        for (int node = 0; node < span_.n_nodes; ++node) {
            const std::vector<char>& data = of_nodes[static_cast<size_t>(node)];
            const size_t sizes = static_cast<size_t>(span_.count(node)) * sizeof(size_t);
            if (data.size() < sizes)
                step_.require_length(span_.leader(node), data.size(), sizes);
            const char* at = data.data();
            for_members(span_, node, [&](int rank) {
                memcpy(&parts_.bytes[static_cast<size_t>(rank)], at, sizeof(size_t));
                at += sizeof(size_t);
            });
        }
    }
    void read_short(const std::vector<std::vector<char>>& of_nodes, bool behind_sizes) const {
        for (int node = 0; node < span_.n_nodes; ++node) {
            if (parts_.is_long(span_, node))
                continue;
            const std::vector<char>& data = of_nodes[static_cast<size_t>(node)];
            const size_t sizes = behind_sizes ? static_cast<size_t>(span_.count(node)) * sizeof(size_t) : 0;
            step_.require_length(span_.leader(node), data.size(), sizes + parts_.sum(span_, node));
            const char* at = data.data() + sizes;
            for_members(span_, node, [&](int rank) {
                if (parts_.part(rank) != 0)
                    memcpy(dest_ + parts_.at(rank), at, parts_.part(rank));
                at += parts_.part(rank);
            });
        }
    }

    CollectiveCall& coll_;
    const team::Span& span_;
    const InternodeStep& step_;
    char* const dest_;
    const char* const source_;
    Parts& parts_;
};

}  // namespace

void collect(CollectiveCall& coll, void* dest, const void* source, size_t bytes, bool same_size) {
    const InternodeStep step = InternodeStep::of_threads(coll, same_size ? StepKind::kFcollect : StepKind::kCollect,
                                                         same_size ? bytes : 0, bytes);
    if (same_size && bytes == 0)
        return meet(coll, step);
    Parts parts;
    Collecting collecting(coll, step, coll.thread_group.of_first(parts), dest, source);
    team::MemberState& segment = coll.state;
    const uint32_t sizes = segment.count + 1, published = segment.count + 2;
    // The barrier says that the sources are ready.
    coll.barrier_with([&] { memcpy(team::next_inline_data(segment), &bytes, sizeof bytes); });
    coll.barrier_with([&] {
        if (!is_leader(coll))
            return;
        std::vector<size_t> here(static_cast<size_t>(segment.size()));
        for (size_t i = 0; i < here.size(); ++i)
            memcpy(&here[i], segment.inline_data(static_cast<int>(i), sizes), sizeof here[i]);
        collecting.learn(here, same_size);
        // The inline data of the coming step is free: all members have reached the step before it.
        int member = 0;
        collecting.for_each_member(
            [&](const MemberInfo& info) { memcpy(segment.inline_data(member++, published), &info, sizeof info); });
    });
    MemberInfo info;
    memcpy(&info, segment.inline_data(segment.rank, published), sizeof info);
    collecting.require_room(info.total);
    if (info.any_long) {
        if (info.here_long)
            collecting.deliver(info, bytes);
        coll.barrier_with([&] {
            if (is_leader(coll))
                collecting.wait_at();
        });
    }
    if (!is_leader(coll))
        copy_share(coll, dest, on(coll, leader_here(coll), dest), info.total);
    coll.barrier_here();
}

namespace {

// Blocks up to this size go through one member of each node, in few control messages for each pair of nodes. Longer
// blocks go from member to member, with a message each, which costs less than the copies (measured:
// docs/decisions/0014).
constexpr size_t kGatheredBlock = 8192;
static_assert(kGatheredBlock <= team::Span::kBlockBytes);

class Alltoall {
  public:
    Alltoall(CollectiveCall& coll, const Blocks& blocks)
        : coll_(coll),
          span_(*coll.team.span),
          step_(InternodeStep::of_threads(coll, StepKind::kAlltoall, blocks.bytes(),
                                          blocks.bytes() * static_cast<size_t>(coll.size()))),
          blocks_(blocks),
          whole_(blocks.from_step == blocks.element_bytes && blocks.to_step == blocks.element_bytes) {}

    const InternodeStep& step() const { return step_; }

    // What a block is divided in: bytes where its elements lie close together, otherwise elements.
    size_t units() const { return whole_ ? blocks_.bytes() : blocks_.nelems; }

    // Copies a share of this member's blocks to the members on this node.
    void copy_here(const ThreadGroup::Share& share) const {
        for_members(span_, span_.node, [&](int rank) {
            char* const to = blocks_.to(dest_of(rank), coll_.rank());
            const char* const from = blocks_.from(source_of(coll_.rank()), rank);
            if (share.size() == 0)
                return;
            if (whole_)
                memcpy(to + share.begin, from + share.begin, share.size());
            else
                copy_strided(to + share.begin * blocks_.to_step, from + share.begin * blocks_.from_step,
                             blocks_.to_step, blocks_.from_step, share.size(), blocks_.element_bytes);
        });
    }

    // Each pair of nodes exchanges its blocks through one speaker on either side. Different members speak to different
    // nodes.
    void by_control_messages() const {
        for_other_nodes(span_, [&](int node) {
            if (speaks_to(node))
                step_.send_all(speaker(node, span_.node), 0, gather_for(node));
        });
        copy_here({0, units()});
        for_other_nodes(span_, [&](int node) {
            if (speaks_to(node))
                scatter_from(node, step_.read_all(speaker(node, span_.node), 0));
        });
    }

    // Each member puts each block to its reader: a sharer some of the blocks, or its share of each where they are few.
    void directly() const {
        const bool by_blocks = static_cast<size_t>(coll_.size() - span_.count(span_.node)) >= step_.sharers();
        const ThreadGroup::Share share = by_blocks ? ThreadGroup::Share{0, units()} : step_.share_of(units(), unit());
        size_t index = 0;
        for_other_members([&](int rank) {
            if (share.size() != 0 && (!by_blocks || step_.is_mine(index++)))
                deliver(rank, share);
        });
        copy_here(coll_.thread_group.share_of(units(), unit()));
        for_other_members([&](int rank) { step_.done(rank); });
        coll_.thread_group.by_one(
            [&] { for_other_members([&](int rank) { step_.wait_at(rank, 0, blocks_.bytes()); }); });
    }

  private:
    char* dest_of(int rank) const { return on(coll_, rank, blocks_.dest); }
    const char* source_of(int rank) const { return on(coll_, rank, blocks_.source); }
    size_t unit() const {
        return whole_ ? ThreadGroup::kLineBytes : std::max<size_t>(1, ThreadGroup::kLineBytes / blocks_.to_step);
    }
    void deliver(int rank, const ThreadGroup::Share& share) const {
        const char* const from = blocks_.from(source_of(coll_.rank()), rank);
        char* const to = blocks_.to(dest_of(coll_.rank()), coll_.rank());
        if (whole_)
            return step_.deliver(rank, 0, to + share.begin, from + share.begin, share.size());
        for (size_t i = share.begin; i < share.end; ++i)
            step_.put(rank, to + i * blocks_.to_step, from + i * blocks_.from_step, blocks_.element_bytes);
        step_.tell_put(rank, 0, share.size() * blocks_.element_bytes);
    }
    // The member of `node` that speaks to to_node.
    int speaker(int node, int to_node) const { return span_.member(node, to_node % span_.count(node)); }
    bool speaks_to(int node) const { return speaker(span_.node, node) == coll_.rank(); }

    // Calls visit(rank) for the members on other nodes, this member's neighbour first.
    template <class Visit>
    void for_other_members(Visit visit) const {
        for (int i = 1; i < coll_.size(); ++i) {
            const int rank = (coll_.rank() + i) % coll_.size();
            if (span_.node_of[rank] != span_.node)
                visit(rank);
        }
    }

    std::vector<char> gather_for(int node) const {
        std::vector<char> message(static_cast<size_t>(span_.count(span_.node)) *
                                  static_cast<size_t>(span_.count(node)) * blocks_.bytes());
        char* at = message.data();
        for_members(span_, span_.node, [&](int here) {
            const char* const source = source_of(here);
            for_members(span_, node, [&](int there) {
                copy_strided(at, blocks_.from(source, there), blocks_.element_bytes, blocks_.from_step, blocks_.nelems,
                             blocks_.element_bytes);
                at += blocks_.bytes();
            });
        });
        return message;
    }
    void scatter_from(int node, const std::vector<char>& message) const {
        const auto blocks = static_cast<size_t>(span_.count(node)) * static_cast<size_t>(span_.count(span_.node));
        step_.require_length(speaker(node, span_.node), message.size(), blocks * blocks_.bytes());
        const char* at = message.data();
        for_members(span_, node, [&](int there) {
            for_members(span_, span_.node, [&](int here) {
                copy_strided(blocks_.to(dest_of(here), there), at, blocks_.to_step, blocks_.element_bytes,
                             blocks_.nelems, blocks_.element_bytes);
                at += blocks_.bytes();
            });
        });
    }

    CollectiveCall& coll_;
    const team::Span& span_;
    const InternodeStep step_;
    const Blocks& blocks_;
    const bool whole_;  // the elements of a block lie side by side in source and dest
};

}  // namespace

void alltoall(CollectiveCall& coll, const Blocks& blocks) {
    const Alltoall step(coll, blocks);
    if (blocks.bytes() == 0)
        return meet(coll, step.step());
    const bool whole = blocks.nelems == 1;
    if (blocks.bytes() <= kGatheredBlock && !(whole && coll.team.span->n_nodes == coll.size())) {
        coll.barrier_here();  // the sources are ready
        coll.barrier_with([&] { step.by_control_messages(); });
    } else {
        step.directly();
        coll.barrier_here();
    }
}

}  // namespace heddle::collective::internode
