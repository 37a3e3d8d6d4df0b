#include "collective/internode/remote_blocks.h"

#include "base/error.h"
#include "operations/check.h"

#include <map>
#include <utility>

namespace heddle::collective {

void end_by_bytes(const Call& call, ExchangeKind kind, const ExchangeBlock& block, int pe, size_t expected,
                  size_t sent) {
    char place[64] = "";
    if (kind != ExchangeKind::kNeighborAlltoall)
        snprintf(place, sizeof place, " from dest_counts[%zu] on", block.place);
    base::fatal(call.function, "PE %d sends %zu bytes to this PE, which expects %zu%s: right would be %s", pe, sent,
                expected, place,
                kind == ExchangeKind::kNeighborAlltoall ? "the same block_bytes on both"
                                                        : "the same counts and element_bytes on both");
}

void end_by_start(const CollectiveCall& coll, int member, bool again) {
    const int mine = coll.pe(coll.rank()), other = coll.state.members.pe(member);
    base::fatal(coll.call.function,
                "PE %d starts its plan again, and PE %d starts one for the first time, or calls: right would be plans "
                "that all members record, and start, as often",
                again ? mine : other, again ? other : mine);
}

namespace internode {

namespace {

// What one member sends another goes as one message up to this size: no question, but a copy on either side.
constexpr size_t kShortExchange = kMaxControlBytes;

constexpr uint32_t kData = 0, kPlaces = 1;  // rounds

bool is_long(size_t bytes) {
    return bytes > kShortExchange;
}

// The only block that has bytes; null where there are several.
template <class Bytes>
const ExchangeBlock* single(const ExchangeBlock* blocks, size_t count, Bytes bytes) {
    const ExchangeBlock* found = nullptr;
    for (size_t i = 0; i < count; ++i) {
        if (bytes(blocks[i]) == 0)
            continue;
        if (found)
            return nullptr;
        found = &blocks[i];
    }
    return found;
}

size_t sent_of(const ExchangeBlock& block) {
    return block.sent;
}
size_t expected_of(const ExchangeBlock& block) {
    return block.expected;
}

}  // namespace

RemoteBlocks::RemoteBlocks(const team::Team& team, ExchangeKind kind, char* dest, const char* source,
                           const std::vector<ExchangeBlock>& blocks)
    : kind_(kind), dest_(dest), source_(source) {
    for (const ExchangeBlock& block : blocks) {
        if (!team.span || team.span->node_of[block.rank] == team.span->node)
            continue;
        if (peers_.empty() || peers_.back().rank != block.rank)
            peers_.push_back({block.rank, &block, 0, 0, 0, {}});
        Peer& peer = peers_.back();
        ++peer.count;
        peer.sent += block.sent;
        peer.expected += block.expected;
    }
}

size_t RemoteBlocks::sent() const {
    size_t bytes = 0;
    for (const Peer& peer : peers_) bytes += peer.sent;
    return bytes;
}

void RemoteBlocks::send_short(const InternodeStep& step, const Peer& peer) const {
    if (const ExchangeBlock* const block = single(peer.blocks, peer.count, sent_of))
        return step.send(peer.rank, kData, source_ + block->from, block->sent);
    std::vector<char> message;
    message.reserve(peer.sent);
    for (size_t i = 0; i < peer.count; ++i) append(message, source_ + peer.blocks[i].from, peer.blocks[i].sent);
    step.send(peer.rank, kData, message.data(), message.size());
}

void RemoteBlocks::read_short(const CollectiveCall& coll, const InternodeStep& step, const Peer& peer) const {
    const auto require = [&](size_t sent) {
        if (sent != peer.expected)
            end_by_bytes(coll.call, kind_, *peer.blocks, step.pe(peer.rank), peer.expected, sent);
    };
    if (const ExchangeBlock* const block = single(peer.blocks, peer.count, expected_of))
        return require(step.read_any(peer.rank, kData, dest_ + block->to, block->expected));
    std::vector<char> message(peer.expected);
    require(step.read_any(peer.rank, kData, message.data(), message.size()));
    const char* at = message.data();
    for (size_t i = 0; i < peer.count; at += peer.blocks[i].expected, ++i)
        if (peer.blocks[i].expected != 0)
            memcpy(dest_ + peer.blocks[i].to, at, peer.blocks[i].expected);
}

void RemoteBlocks::tell_places(const InternodeStep& step, const Peer& peer, bool first) const {
    std::vector<char> places;
    for (size_t i = 0; first && i < peer.count; ++i) append(places, &peer.blocks[i].to, sizeof peer.blocks[i].to);
    step.send_all(peer.rank, kPlaces, places);
}

void RemoteBlocks::learn_places(const CollectiveCall& coll, const InternodeStep& step, Peer& peer) const {
    const std::vector<char> places = step.read_all(peer.rank, kPlaces);
    const int pe = step.pe(peer.rank);
    if (places.size() != peer.count * sizeof(size_t))
        base::fatal(coll.call.function,
                    "PE %d names this PE %zu times in neighbors, and this PE names it %zu times: right would be as "
                    "often, with the same bytes",
                    pe, places.size() / sizeof(size_t), peer.count);
    for (size_t i = 0; i < peer.count; ++i) {
        size_t offset;
        memcpy(&offset, places.data() + i * sizeof offset, sizeof offset);
        char* const to = dest_ + operations::extent(coll.call.function, offset, 1);
        if (peer.blocks[i].sent != 0)
            operations::require_symmetric(coll.call.function, "dest of a neighbor,", to, peer.blocks[i].sent, pe);
        peer.to.push_back(to);
    }
}

// The last block goes with the news that all are there.
void RemoteBlocks::put(const InternodeStep& step, const Peer& peer) const {
    size_t last = peer.count - 1;
    while (peer.blocks[last].sent == 0) --last;
    for (size_t i = 0; i <= last; ++i) {
        const ExchangeBlock& block = peer.blocks[i];
        if (i < last)
            step.put(peer.rank, peer.to[i], source_ + block.from, block.sent);
        else
            step.deliver(peer.rank, kData, peer.to[i], source_ + block.from, block.sent);
    }
}

void RemoteBlocks::begin(const CollectiveCall&, const InternodeStep& step, bool first) const {
    for (const Peer& peer : peers_) {
        if (is_long(peer.expected))
            tell_places(step, peer, first);
        if (peer.sent != 0 && !is_long(peer.sent))
            send_short(step, peer);
    }
}

void RemoteBlocks::finish(const CollectiveCall& coll, const InternodeStep& step, bool first) {
    for (Peer& peer : peers_) {
        if (!is_long(peer.sent))
            continue;
        first ? learn_places(coll, step, peer) : step.read(peer.rank, kPlaces, nullptr, 0);
        put(step, peer);
    }
    for (const Peer& peer : peers_) {
        if (peer.expected != 0 && !is_long(peer.expected))
            read_short(coll, step, peer);
        if (!is_long(peer.expected))
            continue;
        size_t last = peer.count - 1, delivered = 0;
        while (peer.blocks[last].expected == 0) --last;
        const size_t length = step.read_any(peer.rank, kData, &delivered, sizeof delivered);
        if (length != sizeof delivered || delivered != peer.blocks[last].expected)
            end_by_bytes(coll.call, kind_, peer.blocks[last], step.pe(peer.rank), peer.blocks[last].expected,
                         length != sizeof delivered ? length : delivered);
    }
    for (const Peer& peer : peers_)
        if (is_long(peer.sent))
            step.done(peer.rank);
}

void RemoteBlocks::compare(CollectiveCall& coll) const {
    const team::Span& span = *coll.team.span;
    std::vector<TableEntry> mine;
    for (const Peer& peer : peers_)
        for (size_t i = 0; i < peer.count; ++i)
            mine.push_back({coll.rank(), peer.rank, peer.blocks[i].from, peer.blocks[i].sent, peer.blocks[i].expected});
    std::vector<char> here;
    exchange_tables(coll, mine, [&](int, const TableEntry* entries, size_t count) {
        if (is_leader(coll))
            append(here, entries, count * sizeof *entries);
    });
    const InternodeStep step(coll, StepKind::kExchange);
    if (!is_leader(coll))
        return;
    std::map<std::pair<int, int>, std::vector<TableEntry>> by_pair;
    const auto of_node = exchange_between_leaders(coll, step, std::move(here));
    for (int node = 0; node < span.n_nodes; ++node) {
        const std::vector<char>& data = of_node[static_cast<size_t>(node)];
        for (size_t at = 0; data.size() - at >= sizeof(TableEntry); at += sizeof(TableEntry)) {
            TableEntry entry;
            memcpy(&entry, data.data() + at, sizeof entry);
            by_pair[{entry.from, entry.to}].push_back(entry);
        }
    }
    for (const auto& [pair, ours] : by_pair) {
        const auto [from, to] = pair;
        const auto on_node = [&](int rank, int node) {
            return rank >= 0 && rank < coll.size() && span.node_of[rank] == node;
        };
        if (!on_node(from, span.node) || to < 0 || to >= coll.size())
            continue;
        const std::vector<TableEntry>& theirs = by_pair[{to, from}];
        const int pe = coll.pe(from), other = coll.pe(to);
        if (theirs.size() != ours.size())
            base::fatal(coll.call.function,
                        "PE %d names PE %d %zu times in neighbors, and PE %d names PE %d %zu times: right would be as "
                        "often",
                        pe, other, ours.size(), other, pe, theirs.size());
        for (size_t i = 0; i < ours.size(); ++i)
            if (theirs[i].sent != ours[i].expected)
                base::fatal(coll.call.function,
                            "PE %d sends %zu bytes to PE %d, which expects %zu: right would be the same on both", other,
                            theirs[i].sent, pe, ours[i].expected);
    }
}

}  // namespace internode

}  // namespace heddle::collective
