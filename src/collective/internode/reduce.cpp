// Reductions and scans of teams that span nodes (internode.h).
//
// Threads: one of each member, or the threads of its group, whose sharers divide the pieces of a Chain among them.
// Between the barriers only leaders act, and they write the dest of the members on their node.
#include "collective/internode/internode.h"
#include "collective/internode/internode_step.h"
#include "collective/internode/schedule.h"
#include "collective/reduction_order.h"

#include <algorithm>
#include <cstring>

namespace heddle::collective::internode {

namespace {

// A reduction or a scan among the leaders. kind: kReduce, whose sum is of all members; kExclusiveScan, of those before
// a member; or kInclusiveScan, of those up to it.
struct Reduction {
    CollectiveCall& coll;
    const InternodeStep& step;
    Kernel kernel;
    Kind type;
    StepKind kind;
    void* dest;
    const void* source;
    size_t nelems, element_bytes;

    const team::Span& span() const { return *coll.team.span; }
    size_t bytes() const { return nelems * element_bytes; }
    // True when the values of a node's members may be combined first, whatever their ranks.
    bool has_any_order() const { return kind == StepKind::kReduce && collective::has_any_order(type); }
    bool is_tree_order(size_t of_bytes) const {
        return kind == StepKind::kReduce && collective::is_tree_order(type, coll.size(), of_bytes);
    }
    bool is_tree_scan(size_t of_bytes) const {
        return is_scan() && collective::is_tree_scan(type, coll.size(), of_bytes);
    }
    bool is_scan() const { return kind != StepKind::kReduce; }
    bool is_here(int rank) const { return span().node_of[rank] == span().node; }
    char* dest_of(int rank) const { return on(coll, rank, dest); }
    const char* source_of(int rank) const { return on(coll, rank, source); }
};

// Combines parts, in the order of the calls, in `to`.
class Fold {
  public:
    Fold(const Reduction& work, char* to, size_t count) : work_(work), to_(to), count_(count) {}

    void add(const char* part) {
        if (first_)
            memcpy(to_, part, bytes());
        else
            work_.kernel(to_, to_, part, count_);
        first_ = false;
    }
    // Adds the part of a member on this node; in a scan, stores the sum in the member's dest.
    void add_member(const char* part, char* dest) {
        if (work_.kind == StepKind::kExclusiveScan) {
            char own[kMaxControlBytes];
            memcpy(own, part, bytes());  // dest may be the source
            store(dest);
            add(own);
        } else {
            add(part);
            if (work_.kind == StepKind::kInclusiveScan)
                store(dest);
        }
    }
    void store(char* dest) const {
        if (first_)
            memset(dest, 0, bytes());
        else
            memcpy(dest, to_, bytes());
    }

  private:
    size_t bytes() const { return count_ * work_.element_bytes; }

    const Reduction& work_;
    char* const to_;
    const size_t count_;
    bool first_ = true;
};

// Combines the sources of all members on this node, in order.
void sum_of_node(const Reduction& work, char* to) {
    Fold sum(work, to, work.nelems);
    for_members(work.span(), work.span().node, [&](int rank) { sum.add(work.source_of(rank)); });
}

void store_on_node(const Reduction& work, const char* total) {
    for_members(work.span(), work.span().node, [&](int rank) { memcpy(work.dest_of(rank), total, work.bytes()); });
}

// Short data: the leaders exchange the sources of all members, and each combines all of them.
void by_publishing(const Reduction& work) {
    const size_t bytes = work.bytes();
    const team::Span& span = work.span();
    std::vector<char> mine, total(bytes);
    for_members(span, span.node, [&](int rank) { append(mine, work.source_of(rank), bytes); });
    const std::vector<std::vector<char>> of_nodes = exchange_between_leaders(work.coll, work.step, std::move(mine));
    if (work.is_tree_order(bytes)) {
        std::vector<const char*> parts;
        for_parts(work.step, span, of_nodes, bytes, [&](int, const char* part) { parts.push_back(part); });
        combine_as_tree(
            work.kernel, total.data(), work.coll.size(), [&](int rank) { return parts[static_cast<size_t>(rank)]; },
            work.nelems, work.element_bytes);
        return store_on_node(work, total.data());
    }
    Fold sum(work, total.data(), work.nelems);
    for_parts(work.step, span, of_nodes, bytes, [&](int rank, const char* part) {
        if (work.is_here(rank))
            sum.add_member(part, work.dest_of(rank));
        else
            sum.add(part);
    });
    if (work.kind == StepKind::kReduce)
        store_on_node(work, total.data());
}

// Short data that any order combines to the same bits: the leaders exchange the sums of their nodes.
void by_publishing_sums(const Reduction& work) {
    std::vector<char> mine(work.bytes()), total(work.bytes());
    sum_of_node(work, mine.data());
    const std::vector<std::vector<char>> of_nodes = exchange_between_leaders(work.coll, work.step, std::move(mine));
    Fold sum(work, total.data(), work.nelems);
    for (int node = 0; node < work.span().n_nodes; ++node) {
        const std::vector<char>& data = of_nodes[static_cast<size_t>(node)];
        work.step.require_length(work.span().leader(node), data.size(), work.bytes());
        sum.add(data.data());
    }
    store_on_node(work, total.data());
}

// At most a control message of each unit (schedule.h): values meet along a tree. The result of a reduction goes down a
// tree of nodes to the leaders' dest. The sums of a scan go down the tree itself.
class TreeReduction {
  public:
    explicit TreeReduction(const Reduction& work) : work_(work), span_(work.span()) {}

    void run() {
        const int* const mine = span_.members + span_.begins[span_.node];
        if (work_.has_any_order())
            climb(ReductionTree(span_.n_nodes, span_.node, &span_.node, 1, [](int node) { return node; }));
        else
            climb(ReductionTree(work_.coll.size(), span_.node, mine, span_.count(span_.node),
                                [this](int rank) { return span_.node_of[rank]; }));
        work_.is_scan() ? descend_levels() : descend();
    }

  private:
    // The round of a reduction's result, or of the prefixes of a scan's first level; those before are the levels.
    static constexpr uint32_t kDown = 32;

    // What a scan keeps of a level, for its way down: the values of left halves before the right ones were added, those
    // of the receipts, then those of the pairs.
    struct Kept {
        Level level;
        std::vector<char> lefts;
    };

    char* value(size_t block) { return values_.data() + block * work_.bytes(); }

    template <class Tree>
    void climb(Tree tree) {
        for (const auto& block : tree.blocks()) blocks_.emplace_back(block.first, block.count);
        values_.resize(blocks_.size() * work_.bytes());
        for (size_t i = 0; i < blocks_.size(); ++i) begin(blocks_[i].first, blocks_[i].second, value(i));
        for (int number = 0; number < tree.levels(); ++number) {
            Level level = tree.next();
            const auto round = static_cast<uint32_t>(number);
            std::vector<char> lefts;
            if (work_.is_scan()) {
                for (const Transfer& transfer : level.receipts) append(lefts, value(transfer.block), work_.bytes());
                for (const auto& [left, right] : level.pairs) append(lefts, value(left), work_.bytes());
            }
            send(level.sends, round, [&](size_t i) { return value(level.sends[i].block); });
            read(level.receipts, round, [&](size_t i, const char* right) {
                char* const left = value(level.receipts[i].block);
                work_.kernel(left, left, right, work_.nelems);
            });
            for (const auto& [left, right] : level.pairs)
                work_.kernel(value(left), value(left), value(right), work_.nelems);
            if (work_.is_scan())
                kept_.push_back({std::move(level), std::move(lefts)});
        }
    }
    // The value of a block of units that are on this node.
    void begin(int first, int count, char* to) {
        if (work_.has_any_order())
            return sum_of_node(work_, to);
        combine_as_tree(
            work_.kernel, to, count, [&](int i) { return work_.source_of(first + i); }, work_.nelems,
            work_.element_bytes);
    }
    // Calls visit(leader, first, count) for each message: as many transfers as one takes.
    template <class Visit>
    void for_messages(const std::vector<Transfer>& transfers, Visit visit) const {
        const size_t most = kMaxControlBytes / work_.bytes();
        for (size_t first = 0, count = 0; first < transfers.size(); first += count) {
            const int node = transfers[first].node;
            for (count = 1; count < most && first + count < transfers.size(); ++count)
                if (transfers[first + count].node != node)
                    break;
            visit(span_.leader(node), first, count);
        }
    }
    // part(i): the value to send as transfer i.
    template <class Part>
    void send(const std::vector<Transfer>& transfers, uint32_t round, Part part) {
        std::vector<char> message;
        for_messages(transfers, [&](int leader, size_t first, size_t count) {
            message.clear();
            for (size_t i = 0; i < count; ++i) append(message, part(first + i), work_.bytes());
            work_.step.send(leader, round, message.data(), message.size());
        });
    }
    // Calls visit(i, value) for each value that has come, as transfer i.
    template <class Visit>
    void read(const std::vector<Transfer>& transfers, uint32_t round, Visit visit) {
        alignas(64) char message[kMaxControlBytes];
        for_messages(transfers, [&](int leader, size_t first, size_t count) {
            work_.step.read(leader, round, message, count * work_.bytes());
            for (size_t i = 0; i < count; ++i) visit(first + i, message + i * work_.bytes());
        });
    }
    void descend() {
        const BinomialTree tree = binomial_tree(span_.n_nodes, span_.node);
        if (tree.parent >= 0) {
            values_.resize(work_.bytes());
            work_.step.read(span_.leader(tree.parent), kDown, values_.data(), work_.bytes());
        }
        for (const int child : tree.children)
            work_.step.send(span_.leader(child), kDown, values_.data(), work_.bytes());
        memcpy(work_.dest, values_.data(), work_.bytes());
    }

    // From here on a block's value is its prefix; that of the first block is none. A block has its prefix before it is
    // the left half of another: it was a right half at a higher level.
    void descend_levels() {
        for (size_t number = kept_.size(); number-- > 0;) {
            const auto& [level, lefts] = kept_[number];
            const uint32_t round = kDown + static_cast<uint32_t>(number);
            const auto left = [&, all = lefts.data()](size_t i) { return all + i * work_.bytes(); };
            alignas(64) char sum[kMaxControlBytes];
            send(level.receipts, round, [&](size_t i) {
                add_left(sum, level.receipts[i].block, left(i));
                return sum;
            });
            for (size_t i = 0; i < level.pairs.size(); ++i) {
                add_left(sum, level.pairs[i].first, left(level.receipts.size() + i));
                memcpy(value(level.pairs[i].second), sum, work_.bytes());
            }
            read(level.sends, round,
                 [&](size_t i, const char* prefix) { memcpy(value(level.sends[i].block), prefix, work_.bytes()); });
        }
        for (size_t i = 0; i < blocks_.size(); ++i) {
            const auto [first, count] = blocks_[i];
            alignas(64) char sum[kMaxControlBytes];
            Fold fold(work_, sum, work_.nelems);
            if (first != 0)
                fold.add(value(i));
            for (int rank = first; rank < first + count; ++rank)
                fold.add_member(work_.source_of(rank), work_.dest_of(rank));
        }
    }
    // sum = the prefix of a block, combined with the value of a left half that begins with the block.
    void add_left(char* sum, size_t block, const char* left) {
        if (blocks_[block].first == 0)
            memcpy(sum, left, work_.bytes());
        else
            work_.kernel(sum, value(block), left, work_.nelems);
    }

    const Reduction& work_;
    const team::Span& span_;
    std::vector<std::pair<int, int>> blocks_;  // first unit and number of units
    std::vector<char> values_;                 // of the blocks
    std::vector<Kept> kept_;
};

// Long data, in pieces: a sum passes along the members in order, from node to node; a reduction's result then goes
// round all nodes. Every node sends all the time. A node adds kAhead pieces before it passes on the first result, which
// bounds the messages in a control inbox. In a scan they are bounded by what the next node tells of its reading.
//
// The threads that share a leader's part take pieces in turns, or kTold pieces in a scan; each node has as many as it
// likes. One of T threads is kAhead / T of its pieces ahead. So it adds at most kAhead pieces before it passes one on,
// and more than kAhead - 1 before it must have passed one on: some node could always go on (docs/decisions/0061).
class Chain {
  public:
    // meets_trees: other nodes may be in a TreeReduction, should their bytes differ.
    Chain(const Reduction& work, bool meets_trees)
        : work_(work), span_(work.span()), piece_(kMaxControlBytes / work.element_bytes), meets_trees_(meets_trees) {
        for (int rank = 0; rank < work.coll.size(); ++rank)
            if (rank == 0 || span_.node_of[rank] != span_.node_of[rank - 1])
                runs_.push_back(rank);
        runs_.push_back(work.coll.size());
        last_node_ = span_.node_of[work.coll.size() - 1];
    }

    void run() {
        const size_t pieces = n_pieces(), turns = std::min(work_.step.sharers(), kAhead), turn = work_.step.sharer();
        const size_t ahead = kAhead / turns, together = is_scan() ? kTold : 1;
        if (turn >= turns)
            return;
        // The n-th piece of this thread.
        const auto piece = [&](size_t n) { return (n / together * turns + turn) * together + n % together; };
        if (meets_trees_ && turn == 0)
            tell_parent();
        for (size_t n = 0; n < ahead || piece(n - ahead) < pieces; ++n) {
            if (piece(n) < pieces)
                add(piece(n));
            if (n >= ahead && !is_scan())
                gather(piece(n - ahead));
        }
        if (meets_trees_ && turn == 0)
            hear_children();
    }

  private:
    static constexpr size_t kAhead = 16;
    static constexpr size_t kTold = 8;
    static constexpr uint32_t kHere = UINT32_MAX;

    // A chain's node waits for those before it, a tree's for some behind it: nodes whose bytes differ could all wait,
    // and none send. So each node but the first sends an empty message to the node that waits for it in a tree.
    void tell_parent() const {
        const int first = span_.leader(span_.node);
        if (first != 0)
            work_.step.send(span_.leader(parent_of(first)), kHere, nullptr, 0);
    }
    void hear_children() const {
        for (int node = 0; node < span_.n_nodes; ++node) {
            const int first = span_.leader(node);
            if (first != 0 && parent_of(first) == span_.node)
                work_.step.read(first, kHere, nullptr, 0);
        }
    }
    // The node of the left half that the first member of a node is the first right half of: one of an earlier node.
    int parent_of(int first) const { return span_.node_of[first & (first - 1)]; }

    size_t n_pieces() const { return (work_.nelems + piece_ - 1) / piece_; }
    // A reduction's result comes round. In a scan a node tells the one before of each kTold-th piece that it has read.
    // That one sends at most 2 * kAhead pieces that are not read: each kTold of them wait for those kLimit before.
    static constexpr size_t kLimit = 2 * kAhead - kTold + 1;
    bool is_scan() const { return work_.kind != StepKind::kReduce; }
    bool is_limit(size_t index) const { return is_scan() && index >= 2 * kAhead && index % kTold == 0; }
    bool is_told(size_t index) const { return index + kLimit < n_pieces() && is_limit(index + kLimit); }
    size_t count(size_t index) const { return std::min(piece_, work_.nelems - index * piece_); }
    size_t bytes(size_t index) const { return count(index) * work_.element_bytes; }
    size_t at(size_t index) const { return index * piece_ * work_.element_bytes; }
    uint32_t round(size_t index, size_t run) const { return static_cast<uint32_t>(index * (runs_.size() + 1) + run); }
    int leader_of_run(size_t run) const { return span_.leader(span_.node_of[runs_[run]]); }

    // Adds this node's members to the sum of those before them, in each run of neighbours that are on this node.
    void add(size_t index) {
        for (size_t run = 0; run + 1 < runs_.size(); ++run) {
            if (!work_.is_here(runs_[run]))
                continue;
            alignas(64) char sum[kMaxControlBytes], before[kMaxControlBytes];
            Fold fold(work_, sum, count(index));
            if (run > 0) {
                work_.step.read(leader_of_run(run - 1), round(index, run), before, bytes(index));
                if (is_told(index))
                    work_.step.send(leader_of_run(run - 1), round(index, run), nullptr, 0);
                fold.add(before);
            }
            for (int rank = runs_[run]; rank < runs_[run + 1]; ++rank)
                fold.add_member(work_.source_of(rank) + at(index), work_.dest_of(rank) + at(index));
            if (run + 2 < runs_.size() && is_limit(index))
                work_.step.read(leader_of_run(run + 1), round(index - kLimit, run + 1), nullptr, 0);
            if (run + 2 < runs_.size())
                send(leader_of_run(run + 1), round(index, run + 1), sum, index);
            else if (work_.kind == StepKind::kReduce)
                keep(index, sum);
        }
    }
    // Passes the whole sum, which the last member's node has first, to the next node.
    void gather(size_t index) {
        if (span_.node == last_node_)
            return;
        alignas(64) char sum[kMaxControlBytes];
        const int before = (span_.node + span_.n_nodes - 1) % span_.n_nodes;
        work_.step.read(span_.leader(before), round(index, runs_.size()), sum, bytes(index));
        keep(index, sum);
    }
    void keep(size_t index, const char* sum) {
        const int next = (span_.node + 1) % span_.n_nodes;
        if (next != last_node_)
            send(span_.leader(next), round(index, runs_.size()), sum, index);
        memcpy(static_cast<char*>(work_.dest) + at(index), sum, bytes(index));
    }
    void send(int leader, uint32_t which, const char* sum, size_t index) {
        work_.step.send(leader, which, sum, bytes(index));
    }

    const Reduction& work_;
    const team::Span& span_;
    const size_t piece_;  // elements
    const bool meets_trees_;
    std::vector<int> runs_;  // the first rank of each run of neighbours on one node; and the end
    int last_node_;
};

enum class ReductionAlgorithm { kPublishing, kPublishingSums, kTree, kChain };

// That of a reduction or scan with other bytes.
ReductionAlgorithm algorithm_of(const Reduction& work, size_t bytes) {
    constexpr size_t kMaxExchanged = 2 * kMaxControlBytes;  // of all: two pieces of a chain of two nodes
    static_assert(kMaxTreeBytes <= kMaxControlBytes);
    const auto fits = [&](int units) { return bytes <= kMaxExchanged / static_cast<size_t>(units); };
    if (work.has_any_order())
        return fits(work.span().n_nodes) ? ReductionAlgorithm::kPublishingSums
               : bytes <= kMaxTreeBytes  ? ReductionAlgorithm::kTree
                                         : ReductionAlgorithm::kChain;
    return fits(work.coll.size())                                  ? ReductionAlgorithm::kPublishing
           : work.is_tree_order(bytes) || work.is_tree_scan(bytes) ? ReductionAlgorithm::kTree
                                                                   : ReductionAlgorithm::kChain;
}

// The part of a leader.
void lead(const Reduction& work, ReductionAlgorithm algorithm) {
    switch (algorithm) {
        case ReductionAlgorithm::kPublishing:
            return by_publishing(work);
        case ReductionAlgorithm::kPublishingSums:
            return by_publishing_sums(work);
        case ReductionAlgorithm::kTree:
            return TreeReduction(work).run();
        case ReductionAlgorithm::kChain:
            return Chain(work, algorithm_of(work, kMaxTreeBytes) == ReductionAlgorithm::kTree).run();
    }
}

void run(CollectiveCall& coll, Kernel kernel, Kind type, StepKind kind, void* dest, const void* source, size_t nelems,
         size_t element_bytes) {
    const size_t bytes = nelems * element_bytes;
    const InternodeStep step = InternodeStep::of_threads(coll, kind, bytes, bytes);
    if (nelems == 0)
        return meet(coll, step);
    const Reduction work = {coll, step, kernel, type, kind, dest, source, nelems, element_bytes};
    const ReductionAlgorithm algorithm = algorithm_of(work, bytes);
    const bool by_all = algorithm == ReductionAlgorithm::kChain;
    coll.barrier_here();  // the sources are ready
    if (by_all && is_leader(coll))
        lead(work, algorithm);
    coll.barrier_with([&] {
        if (!by_all && is_leader(coll))
            lead(work, algorithm);
    });
    if (algorithm == ReductionAlgorithm::kPublishing || algorithm == ReductionAlgorithm::kPublishingSums ||
        kind != StepKind::kReduce)
        return;  // the leader has written it
    if (!is_leader(coll)) {
        const ThreadGroup::Share share = coll.thread_group.share_of(bytes, ThreadGroup::kLineBytes);
        memcpy(static_cast<char*>(dest) + share.begin, on(coll, leader_here(coll), dest) + share.begin, share.size());
    }
    coll.barrier_here();
}

}  // namespace

void reduce(CollectiveCall& coll, Kernel kernel, Kind type, void* dest, const void* source, size_t nelems,
            size_t element_bytes) {
    run(coll, kernel, type, StepKind::kReduce, dest, source, nelems, element_bytes);
}

void scan(CollectiveCall& coll, Kernel kernel, Kind type, bool inclusive, void* dest, const void* source, size_t nelems,
          size_t element_bytes) {
    run(coll, kernel, type, inclusive ? StepKind::kInclusiveScan : StepKind::kExclusiveScan, dest, source, nelems,
        element_bytes);
}

}  // namespace heddle::collective::internode
