#include "collective/across.h"

#include "fabric/network.h"
#include "memory/symmetric.h"
#include "operations/remote.h"
#include "progress/wait_policy.h"

#include <heddle/constants.h>
#include <algorithm>
#include <cstring>
#include <vector>

namespace heddle::collective {

namespace {

using operations::Under;

constexpr size_t kMostLetter = 16 * 1024;

// What a step across nodes needs: its number, alike on all members, and ways to send and to read.
class Step {
  public:
    explicit Step(Entered& entered) : entered_(entered), number_(++entered.team.span->steps) {}

    // Sends data to a member, from this one; round tells apart what one member sends another in this step.
    void send(int pe, uint32_t round, const void* data, size_t bytes) const {
        operations::remote_letter(under(), pe, key(round), static_cast<uint32_t>(entered_.rank()), data, bytes);
    }
    // Waits for the letter of a member; returns its size.
    size_t read(int from_rank, uint32_t round, void* data, size_t bytes) const {
        size_t length = 0;
        progress::wait_for_stores(entered_.call.function, entered_.team.span, [&] {
            return fabric::network->mailbox().take(key(round), static_cast<uint32_t>(from_rank), data, bytes, &length);
        });
        return length;
    }
    void put(int pe, void* dest, const void* source, size_t bytes) const {
        if (bytes != 0)
            operations::remote_put(under(), dest, source, bytes, pe);
    }
    // Puts, and tells pe when all of it is there: by an empty letter.
    void deliver(int pe, void* dest, const void* source, size_t bytes) const {
        put(pe, dest, source, bytes);
        operations::remote_order(under(), pe);
        send(pe, 0, nullptr, 0);
        go(pe);
    }
    // Waits for what a member delivers.
    void await(int from_rank) const { read(from_rank, 0, nullptr, 0); }
    // Nothing that was sent to pe waits for more.
    void go(int pe) const { operations::remote_go(under(), pe); }
    // What was put may be overwritten here.
    void done(int pe) const { operations::remote_put_done(under(), pe); }

  private:
    Under under() const { return {.call = entered_.call, .ctx = SHMEM_CTX_DEFAULT}; }
    uint64_t key(uint32_t round) const {
        return entered_.team.span->id ^ (number_ * 0x9e3779b97f4a7c15) ^ (uint64_t{round} << 1);
    }

    Entered& entered_;
    const uint64_t number_;
};

bool is_leader(const Entered& entered) {
    return entered.place.rank == 0;
}

int leader_rank(const Entered& entered, int node) {
    return entered.team.members.rank(entered.team.span->leaders[node]);
}

void meet_here(Entered& entered) {
    team::meet(entered.call, entered.place);
}

// The leaders meet (dissemination: Hensgen, Finkel, Manber 1988), and find whether `mine` was on all of them.
bool leaders_meet(Entered& entered, const Step& step, bool mine) {
    const team::Span& span = *entered.team.span;
    for (int distance = 1, round = 0; distance < span.n_nodes; distance *= 2, ++round) {
        const int to = (span.node + distance) % span.n_nodes,
                  from = (span.node + span.n_nodes - distance) % span.n_nodes;
        const auto which = static_cast<uint32_t>(round);
        step.send(span.leaders[to], which, &mine, sizeof mine);
        step.go(span.leaders[to]);
        bool theirs = false;
        step.read(leader_rank(entered, from), which, &theirs, sizeof theirs);
        mine = mine && theirs;
    }
    return mine;
}

// Calls visit(pe) for the first members of the other nodes, that of the next node first.
template <class Visit>
void for_other_leaders(const team::Span& span, Visit visit) {
    for (int i = 1; i < span.n_nodes; ++i) visit(span.leaders[(span.node + i) % span.n_nodes]);
}

// Calls visit(rank, pe) for the members on other nodes, this member's neighbour first.
template <class Visit>
void for_others(const Entered& entered, Visit visit) {
    const team::Span& span = *entered.team.span;
    for (int i = 1; i < entered.size(); ++i) {
        const int rank = (entered.rank() + i) % entered.size();
        if (span.node_of[rank] != span.node)
            visit(rank, entered.pe(rank));
    }
}
// And for those on this one, this member too.
template <class Visit>
void for_locals(const Entered& entered, Visit visit) {
    const team::Span& span = *entered.team.span;
    for (int rank = 0; rank < entered.size(); ++rank)
        if (span.node_of[rank] == span.node)
            visit(rank, entered.pe(rank));
}

// The same object on another PE of this node.
const char* on(const void* address, int pe) {
    return memory::address_on(address, pe);
}

}  // namespace

void meet_across(Entered& entered) {
    const Step step(entered);
    meet_here(entered);
    if (is_leader(entered))
        leaders_meet(entered, step, true);
    meet_here(entered);
}

bool all_agree(Entered& entered, bool mine) {
    if (!entered.team.span)
        return mine;
    const Step step(entered);
    bool all = mine;
    if (is_leader(entered)) {
        all = leaders_meet(entered, step, mine);
        memcpy(team::next_note(entered.place), &all, sizeof all);
    }
    const uint32_t told = entered.place.count + 1;
    meet_here(entered);
    memcpy(&all, entered.place.note(0, told), sizeof all);
    return all;
}

namespace across {

// From the root to the leaders of the other nodes, and from there, or from the root, to the others of the node.
void broadcast(Entered& entered, void* dest, const void* source, size_t bytes, int root, bool root_too) {
    const Step step(entered);
    const team::Span& span = *entered.team.span;
    const int root_node = span.node_of[root];
    if (entered.rank() == root) {
        for_other_leaders(span, [&](int leader) { step.deliver(leader, dest, source, bytes); });
        for_other_leaders(span, [&](int leader) { step.done(leader); });
    }
    if (span.node != root_node && is_leader(entered))
        step.await(root);
    meet_here(entered);
    const bool has_it = span.node != root_node && is_leader(entered);
    const char* const from = span.node == root_node ? on(source, entered.pe(root)) : on(dest, span.leaders[span.node]);
    if (!has_it && bytes != 0 && (root_too || entered.rank() != root) && from != dest)
        memmove(dest, from, bytes);
    meet_here(entered);
}

void collect(Entered& entered, void* dest, const void* source, size_t bytes) {
    // Sizes first: every member tells all others.
    const auto size = static_cast<size_t>(entered.size());
    std::vector<size_t> parts(size);
    const Step sizes(entered);
    for_others(entered, [&](int, int pe) {
        sizes.send(pe, 0, &bytes, sizeof bytes);
        sizes.go(pe);
    });
    const uint32_t told = entered.place.count + 1;
    memcpy(team::next_note(entered.place), &bytes, sizeof bytes);
    meet_here(entered);
    for_locals(entered, [&](int rank, int pe) {
        memcpy(&parts[static_cast<size_t>(rank)], entered.place.note(entered.place.members.rank(pe), told),
               sizeof(size_t));
    });
    for_others(entered, [&](int rank, int) { sizes.read(rank, 0, &parts[static_cast<size_t>(rank)], sizeof(size_t)); });
    std::vector<size_t> offsets(size + 1, 0);
    for (size_t rank = 0; rank < size; ++rank) offsets[rank + 1] = offsets[rank] + parts[rank];
    const auto offset = [&](int rank) { return offsets[static_cast<size_t>(rank)]; };
    char* const to = static_cast<char*>(dest);

    // Each member's part to the leader of every other node, which the others of that node copy from.
    const Step step(entered);
    const team::Span& span = *entered.team.span;
    for_other_leaders(span, [&](int leader) { step.deliver(leader, to + offset(entered.rank()), source, bytes); });
    for_locals(entered, [&](int rank, int pe) {
        const size_t part = parts[static_cast<size_t>(rank)];
        const char* const from = on(source, pe);
        if (part != 0 && from != to + offset(rank))
            memmove(to + offset(rank), from, part);
    });
    for_other_leaders(span, [&](int leader) { step.done(leader); });
    if (is_leader(entered))
        for_others(entered, [&](int rank, int) { step.await(rank); });
    meet_here(entered);
    if (!is_leader(entered))
        for_others(entered, [&](int rank, int) {
            if (parts[static_cast<size_t>(rank)] != 0)
                memcpy(to + offset(rank), on(dest, span.leaders[span.node]) + offset(rank),
                       parts[static_cast<size_t>(rank)]);
        });
    meet_here(entered);
}

void alltoall(Entered& entered, void* dest, const void* source, size_t bytes) {
    const Step step(entered);
    char* const to = static_cast<char*>(dest);
    const char* const from = static_cast<const char*>(source);
    const auto block = [&](int rank) { return static_cast<size_t>(rank) * bytes; };
    for_others(entered,
               [&](int rank, int pe) { step.deliver(pe, to + block(entered.rank()), from + block(rank), bytes); });
    for_locals(entered, [&](int, int pe) {
        if (bytes != 0)
            memcpy(const_cast<char*>(on(dest, pe)) + block(entered.rank()), from + block(entered.team.members.rank(pe)),
                   bytes);
    });
    for_others(entered, [&](int, int pe) { step.done(pe); });
    for_others(entered, [&](int rank, int) { step.await(rank); });
    meet_here(entered);
}

void alltoalls(Entered& entered, void* dest, const void* source, size_t to_step, size_t from_step, size_t nelems,
               size_t element_bytes) {
    const Step step(entered);
    char* const to = static_cast<char*>(dest) + static_cast<size_t>(entered.rank()) * nelems * to_step;
    const auto from = [&](int rank) {
        return static_cast<const char*>(source) + static_cast<size_t>(rank) * nelems * from_step;
    };
    for_others(entered, [&](int rank, int pe) {
        for (size_t i = 0; i < nelems; ++i) step.put(pe, to + i * to_step, from(rank) + i * from_step, element_bytes);
        step.send(pe, 0, nullptr, 0);
        step.go(pe);
    });
    for_locals(entered, [&](int rank, int pe) {
        char* const there = const_cast<char*>(on(dest, pe)) + (to - static_cast<char*>(dest));
        for (size_t i = 0; i < nelems; ++i) memcpy(there + i * to_step, from(rank) + i * from_step, element_bytes);
    });
    for_others(entered, [&](int rank, int) { step.await(rank); });
    meet_here(entered);
}

namespace {

// A reduction among the leaders: what they need to know of it.
struct Reduction {
    Entered& entered;
    const Step& step;
    Kernel kernel;
    char* dest;
    const char* source;
    size_t element_bytes;
};

// to = the parts one behind the other, in the order of the calls.
class Fold {
  public:
    Fold(const Reduction& reduction, char* to, size_t count) : reduction_(reduction), to_(to), count_(count) {}

    void add(const char* part) {
        if (first_)
            memcpy(to_, part, count_ * reduction_.element_bytes);
        else
            reduction_.kernel(to_, to_, part, count_);
        first_ = false;
    }

  private:
    const Reduction& reduction_;
    char* const to_;
    const size_t count_;
    bool first_ = true;
};

// Short ones: each leader sends the sources of all members on its node to all others, and combines what there is.
void reduce_all_parts(const Reduction& work, size_t nelems) {
    const team::Span& span = *work.entered.team.span;
    const size_t bytes = nelems * work.element_bytes;
    const auto n_nodes = static_cast<size_t>(span.n_nodes);
    std::vector<std::vector<char>> parts(n_nodes);  // of the members on each node, in their order
    std::vector<size_t> read(n_nodes, 0);
    std::vector<size_t> members(n_nodes, 0);
    for (int rank = 0; rank < work.entered.size(); ++rank) ++members[static_cast<size_t>(span.node_of[rank])];
    std::vector<char>& mine = parts[static_cast<size_t>(span.node)];
    for_locals(work.entered, [&](int, int pe) {
        const char* const part = on(work.source, pe);
        mine.insert(mine.end(), part, part + bytes);
    });
    for_other_leaders(span, [&](int leader) {
        work.step.send(leader, 0, mine.data(), mine.size());
        work.step.go(leader);
    });
    for (int node = 0; node < span.n_nodes; ++node) {
        if (node == span.node)
            continue;
        std::vector<char>& theirs = parts[static_cast<size_t>(node)];
        theirs.resize(members[static_cast<size_t>(node)] * bytes);
        work.step.read(leader_rank(work.entered, node), 0, theirs.data(), theirs.size());
    }
    Fold sum(work, work.dest, nelems);
    for (int rank = 0; rank < work.entered.size(); ++rank) {
        const auto node = static_cast<size_t>(span.node_of[rank]);
        sum.add(parts[node].data() + read[node]++ * bytes);
    }
}

// Long ones, in pieces: a sum goes along the members in their order, from node to node, and then round all nodes.
// Pieces follow each other, so that every node sends all the time; kAhead of them are under way, which bounds what
// waits in a mailbox.
class Chain {
  public:
    Chain(const Reduction& work, size_t nelems)
        : work_(work), span_(*work.entered.team.span), nelems_(nelems), piece_(kMostLetter / work.element_bytes) {
        for (int rank = 0; rank < work.entered.size(); ++rank)
            if (rank == 0 || span_.node_of[rank] != span_.node_of[rank - 1])
                runs_.push_back(rank);
        runs_.push_back(work.entered.size());
        last_node_ = span_.node_of[work.entered.size() - 1];
    }

    void reduce() {
        constexpr size_t kAhead = 16;
        const size_t pieces = (nelems_ + piece_ - 1) / piece_;
        for (size_t i = 0; i < pieces + kAhead; ++i) {
            if (i < pieces)
                add(i);
            if (i >= kAhead && i - kAhead < pieces)
                pass_on(i - kAhead);
        }
    }

  private:
    size_t count(size_t index) const { return std::min(piece_, nelems_ - index * piece_); }
    size_t at(size_t index) const { return index * piece_ * work_.element_bytes; }
    uint32_t round(size_t index, size_t run) const { return static_cast<uint32_t>(index * (runs_.size() + 1) + run); }
    int leader_of(int node) const { return span_.leaders[node]; }

    // This node's members to the sum of those before them, in each run of members that are here.
    void add(size_t index) {
        for (size_t run = 0; run + 1 < runs_.size(); ++run) {
            if (span_.node_of[runs_[run]] != span_.node)
                continue;
            alignas(64) char sum[kMostLetter], before[kMostLetter];
            Fold fold(work_, sum, count(index));
            if (run > 0) {
                work_.step.read(leader_rank(work_.entered, span_.node_of[runs_[run - 1]]), round(index, run), before,
                                sizeof before);
                fold.add(before);
            }
            for (int rank = runs_[run]; rank < runs_[run + 1]; ++rank)
                fold.add(on(work_.source, work_.entered.pe(rank)) + at(index));
            if (run + 2 < runs_.size())
                send(leader_of(span_.node_of[runs_[run + 1]]), round(index, run + 1), sum, index);
            else
                keep(index, sum);
        }
    }
    // The whole sum, which the node of the last member has, to the next node.
    void pass_on(size_t index) {
        if (span_.node == last_node_)
            return;
        alignas(64) char sum[kMostLetter];
        const int before = (span_.node + span_.n_nodes - 1) % span_.n_nodes;
        work_.step.read(leader_rank(work_.entered, before), round(index, runs_.size()), sum, sizeof sum);
        keep(index, sum);
    }
    void keep(size_t index, const char* sum) {
        const int next = (span_.node + 1) % span_.n_nodes;
        if (next != last_node_)
            send(leader_of(next), round(index, runs_.size()), sum, index);
        memcpy(work_.dest + at(index), sum, count(index) * work_.element_bytes);
    }
    void send(int leader, uint32_t which, const char* sum, size_t index) {
        work_.step.send(leader, which, sum, count(index) * work_.element_bytes);
        work_.step.go(leader);
    }

    const Reduction& work_;
    const team::Span& span_;
    const size_t nelems_;
    const size_t piece_;     // elements
    std::vector<int> runs_;  // where members begin that follow each other on one node; and the end
    int last_node_;
};

}  // namespace

void reduce(Entered& entered, Kernel kernel, void* dest, const void* source, size_t nelems, size_t element_bytes) {
    constexpr size_t kShortBytes = 8192;
    constexpr int kFewNodes = 64;
    const Step step(entered);
    const team::Span& span = *entered.team.span;
    const Reduction work = {entered,      step, kernel, static_cast<char*>(dest), static_cast<const char*>(source),
                            element_bytes};
    meet_here(entered);  // all sources are ready
    if (is_leader(entered) && nelems != 0) {
        // Alike on all members: what goes into a letter is at most what all members have.
        if (nelems * element_bytes * static_cast<size_t>(entered.size()) <= kShortBytes && span.n_nodes <= kFewNodes)
            reduce_all_parts(work, nelems);
        else
            Chain(work, nelems).reduce();
    }
    meet_here(entered);
    if (!is_leader(entered) && nelems != 0)
        memcpy(dest, on(dest, span.leaders[span.node]), nelems * element_bytes);
    meet_here(entered);
}

// Every member tells its source to those behind it, in pieces of a letter.
void scan(Entered& entered, Kernel kernel, bool inclusive, void* dest, const void* source, size_t nelems,
          size_t element_bytes) {
    const Step step(entered);
    const team::Span& span = *entered.team.span;
    const size_t piece = kMostLetter / element_bytes;
    const int me = entered.rank();
    std::vector<char> result(nelems * element_bytes);
    meet_here(entered);  // all sources are ready
    uint32_t round = 0;
    for (size_t at = 0; at < nelems; at += piece, ++round) {
        const size_t count = std::min(piece, nelems - at), bytes = count * element_bytes;
        const char* const mine = static_cast<const char*>(source) + at * element_bytes;
        for (int rank = me + 1; rank < entered.size(); ++rank) {
            if (span.node_of[rank] == span.node)
                continue;
            step.send(entered.pe(rank), round, mine, bytes);
            step.go(entered.pe(rank));
        }
        char* const sum = result.data() + at * element_bytes;
        memset(sum, 0, bytes);
        alignas(64) char theirs[kMostLetter];
        for (int rank = 0; rank < me + inclusive; ++rank) {
            const char* part = theirs;
            if (span.node_of[rank] == span.node)
                part = on(source, entered.pe(rank)) + at * element_bytes;
            else
                step.read(rank, round, theirs, sizeof theirs);
            if (rank == 0)
                memcpy(sum, part, bytes);
            else
                kernel(sum, sum, part, count);
        }
    }
    meet_here(entered);  // all sources have been read
    if (nelems != 0)
        memcpy(dest, result.data(), result.size());
}

}  // namespace across

}  // namespace heddle::collective
