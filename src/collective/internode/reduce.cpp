// Reductions and scans of teams that span nodes (internode.h).
//
// Threads: one of each member. Between the barriers only leaders act, and they write the dest of the members on their
// node.
#include "collective/internode/internode.h"
#include "collective/internode/internode_step.h"

#include <algorithm>
#include <cstring>

namespace heddle::collective::internode {

namespace {

// The sum that a member receives: of all members, of those before it, or of those up to it.
enum class ReductionKind { kReduce, kExclusiveScan, kInclusiveScan };

// A reduction or a scan among the leaders.
struct Reduction {
    CollectiveCall& coll;
    const InternodeStep& step;
    Kernel kernel;
    ReductionKind kind;
    void* dest;
    const void* source;
    size_t nelems, element_bytes;

    const team::Span& span() const { return *coll.team.span; }
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
        if (work_.kind == ReductionKind::kExclusiveScan) {
            char own[kMaxControlBytes];
            memcpy(own, part, bytes());  // dest may be the source
            store(dest);
            add(own);
        } else {
            add(part);
            if (work_.kind == ReductionKind::kInclusiveScan)
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

// Short data: the leaders exchange the sources of all members, and each combines all of them.
void by_publishing(const Reduction& work) {
    const size_t bytes = work.nelems * work.element_bytes;
    const team::Span& span = work.span();
    std::vector<char> mine;
    for_members(span, span.node, [&](int rank) { append(mine, work.source_of(rank), bytes); });
    std::vector<char> total(bytes);
    Fold sum(work, total.data(), work.nelems);
    for_parts(work.step, span, exchange_between_leaders(work.coll, work.step, std::move(mine)), bytes,
              [&](int rank, const char* part) {
                  if (work.is_here(rank))
                      sum.add_member(part, work.dest_of(rank));
                  else
                      sum.add(part);
              });
    if (work.kind == ReductionKind::kReduce)
        for_members(span, span.node, [&](int rank) { sum.store(work.dest_of(rank)); });
}

// Long data, in pieces: a sum passes along the members in order, from node to node; a reduction's result then goes
// round all nodes. Every node sends all the time. A node adds kAhead pieces before it passes on the first result, which
// bounds the messages in a control inbox (but for a scan, where all pieces of the nodes before may be there).
class Chain {
  public:
    explicit Chain(const Reduction& work)
        : work_(work), span_(work.span()), piece_(kMaxControlBytes / work.element_bytes) {
        for (int rank = 0; rank < work.coll.size(); ++rank)
            if (rank == 0 || span_.node_of[rank] != span_.node_of[rank - 1])
                runs_.push_back(rank);
        runs_.push_back(work.coll.size());
        last_node_ = span_.node_of[work.coll.size() - 1];
    }

    void run() {
        constexpr size_t kAhead = 16;
        const size_t pieces = (work_.nelems + piece_ - 1) / piece_;
        for (size_t i = 0; i < pieces + kAhead; ++i) {
            if (i < pieces)
                add(i);
            if (i >= kAhead && i - kAhead < pieces && work_.kind == ReductionKind::kReduce)
                pass_on(i - kAhead);
        }
    }

  private:
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
                fold.add(before);
            }
            for (int rank = runs_[run]; rank < runs_[run + 1]; ++rank)
                fold.add_member(work_.source_of(rank) + at(index), work_.dest_of(rank) + at(index));
            if (run + 2 < runs_.size())
                send(leader_of_run(run + 1), round(index, run + 1), sum, index);
            else if (work_.kind == ReductionKind::kReduce)
                keep(index, sum);
        }
    }
    // Passes the whole sum, which the last member's node has first, to the next node.
    void pass_on(size_t index) {
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
    const size_t piece_;     // elements
    std::vector<int> runs_;  // the first rank of each run of neighbours on one node; and the end
    int last_node_;
};

void run(CollectiveCall& coll, Kernel kernel, ReductionKind kind, void* dest, const void* source, size_t nelems,
         size_t element_bytes) {
    constexpr size_t kMaxExchanged = 2 * kMaxControlBytes;  // of all members: two pieces of a chain of two nodes
    const InternodeStep step(coll);
    if (nelems == 0)
        return;
    const Reduction work = {coll, step, kernel, kind, dest, source, nelems, element_bytes};
    const size_t bytes = nelems * element_bytes;
    const bool is_exchanged = bytes * static_cast<size_t>(coll.size()) <= kMaxExchanged;
    node_barrier(coll);  // the sources are ready
    if (is_leader(coll)) {
        if (is_exchanged)
            by_publishing(work);
        else
            Chain(work).run();
    }
    node_barrier(coll);
    if (is_exchanged || kind != ReductionKind::kReduce)
        return;  // the leader has written it
    if (!is_leader(coll))
        memcpy(dest, on(coll, leader_here(coll), dest), bytes);
    node_barrier(coll);
}

}  // namespace

void reduce(CollectiveCall& coll, Kernel kernel, void* dest, const void* source, size_t nelems, size_t element_bytes) {
    run(coll, kernel, ReductionKind::kReduce, dest, source, nelems, element_bytes);
}

void scan(CollectiveCall& coll, Kernel kernel, bool inclusive, void* dest, const void* source, size_t nelems,
          size_t element_bytes) {
    run(coll, kernel, inclusive ? ReductionKind::kInclusiveScan : ReductionKind::kExclusiveScan, dest, source, nelems,
        element_bytes);
}

}  // namespace heddle::collective::internode
