// RemoteBlocks: the blocks of an exchange (collective/exchange.h) with members on other nodes. What a member has for
// another one goes as one control message while it is short. Longer blocks are put straight into place, when their
// reader has said that it is in the exchange, and where they belong.
//
// Threads: one of the member.
#pragma once

#include "collective/internode/internode_step.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace heddle::collective {

enum class ExchangeKind : uint8_t { kAlltoallv, kNeighborAlltoall, kNeighborAlltoallv };

// What a member exchanges with another one at a place of its list: bytes behind dest and behind source.
struct ExchangeBlock {
    int rank;  // of the other member
    size_t place;
    size_t to, expected;  // in dest
    size_t from, sent;    // in source
};

// A block as members show it to each other.
struct TableEntry {
    int32_t from, to;  // ranks
    size_t offset;     // in the source of `from`
    size_t sent, expected;
};

// Ends the PE: a member sends another number of bytes than this one expects. block: the first of that member's.
[[noreturn]] void end_by_bytes(const Call& call, ExchangeKind kind, const ExchangeBlock& block, int pe, size_t expected,
                               size_t sent);

// In place of the length of a table, in the inline data of a step in which a plan is started again.
constexpr size_t kStartedAgain = SIZE_MAX;
// Ends the PE: a member of this node starts a plan again, and another one does not. again: this one.
[[noreturn]] void end_by_start(const CollectiveCall& coll, int member, bool again);

// Tables of the members on this node, one with the other. visit(member, entries, count) has each of them, in pieces, in
// the table's order. A short table is inline data of a barrier; longer ones take further barriers.
template <class Visit>
void exchange_tables(CollectiveCall& coll, const std::vector<TableEntry>& mine, Visit visit);

namespace internode {

class RemoteBlocks {
  public:
    RemoteBlocks() = default;
    // blocks: of an exchange, by rank; stay where they are.
    RemoteBlocks(const team::Team& team, ExchangeKind kind, char* dest, const char* source,
                 const std::vector<ExchangeBlock>& blocks);

    // What this member sends so, in bytes.
    size_t sent() const;
    // In a checked run: the leaders compare the tables of all nodes.
    void compare(CollectiveCall& coll) const;
    // Sends what needs no answer. first: readers say where their blocks belong.
    void begin(const CollectiveCall& coll, const InternodeStep& step, bool first) const;
    // Puts the long blocks, and returns when all are here and there.
    void finish(const CollectiveCall& coll, const InternodeStep& step, bool first);

  private:
    struct Peer {
        int rank;
        const ExchangeBlock* blocks;
        size_t count;
        size_t sent, expected;  // in all
        std::vector<char*> to;  // of long blocks: where each belongs, as an address of this PE
    };

    void send_short(const InternodeStep& step, const Peer& peer) const;
    void read_short(const CollectiveCall& coll, const InternodeStep& step, const Peer& peer) const;
    void tell_places(const InternodeStep& step, const Peer& peer, bool first) const;
    void learn_places(const CollectiveCall& coll, const InternodeStep& step, Peer& peer) const;
    void put(const InternodeStep& step, const Peer& peer) const;

    ExchangeKind kind_ = ExchangeKind::kAlltoallv;
    char* dest_ = nullptr;
    const char* source_ = nullptr;
    std::vector<Peer> peers_;
};

}  // namespace internode

// --- Implementation

constexpr size_t kTableHeader = 16;  // a count, and the alignment of what follows
constexpr size_t kInlineEntries = (team::kInlineBytes - kTableHeader) / sizeof(TableEntry);
constexpr size_t kBounceEntries = team::kBounceBytes / sizeof(TableEntry);

template <class Visit>
void exchange_tables(CollectiveCall& coll, const std::vector<TableEntry>& mine, Visit visit) {
    team::MemberState& state = coll.state;
    const size_t count = mine.size();
    const uint32_t step = state.count + 1;
    char* const shown = team::next_inline_data(state);
    memcpy(shown, &count, sizeof count);
    if (count != 0 && count <= kInlineEntries)
        memcpy(shown + kTableHeader, mine.data(), count * sizeof(TableEntry));
    team::published_barrier(coll.call, state);
    std::vector<size_t> counts(static_cast<size_t>(state.size()));
    for (int member = 0; member < state.size(); ++member) {
        size_t& theirs = counts[static_cast<size_t>(member)];
        const char* const there = state.inline_data(member, step);
        memcpy(&theirs, there, sizeof theirs);
        if (theirs == kStartedAgain)
            end_by_start(coll, member, false);
        if (theirs <= kInlineEntries)
            visit(member, reinterpret_cast<const TableEntry*>(there + kTableHeader), theirs);
    }
    const size_t most = *std::max_element(counts.begin(), counts.end());
    for (size_t at = 0; most > kInlineEntries && at < most; at += kBounceEntries) {
        char* const bounce = team::next_bounce(state);
        if (count > kInlineEntries && at < count)
            memcpy(bounce, mine.data() + at, std::min(kBounceEntries, count - at) * sizeof(TableEntry));
        team::barrier(coll.call, state);
        for (int member = 0; member < state.size(); ++member) {
            const size_t theirs = counts[static_cast<size_t>(member)];
            if (theirs > kInlineEntries && at < theirs)
                visit(member, reinterpret_cast<const TableEntry*>(state.bounced(member)),
                      std::min(kBounceEntries, theirs - at));
        }
    }
}

}  // namespace heddle::collective
