#include "collective/internode/internode_step.h"

#include "base/error.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace heddle::collective {

namespace {

const char* name_of(uint64_t kind) {
    constexpr const char* kNames[] = {"a barrier",         "a broadcast",       "a collect",
                                      "an fcollect",       "an alltoall",       "a reduction",
                                      "an inclusive scan", "an exclusive scan", "an exchange"};
    return kind < std::size(kNames) ? kNames[kind] : "a call that is none";
}

}  // namespace

// No leader is further ahead of another than kStepsAhead: a barrier of the leaders, as before a step that is as many
// behind. A broadcast or a scan would let some run ahead for ever, and their messages wait elsewhere.
void InternodeStep::catch_up() const {
    constexpr uint32_t kFirstRound = UINT32_MAX - 64;  // beyond those of the collectives
    const team::Span& span = *coll_.team.span;
    uint32_t round = kFirstRound;
    for (int distance = 1; distance < span.n_nodes && is_leader(coll_); distance *= 2, ++round) {
        send(span.leader((span.node + distance) % span.n_nodes), round, nullptr, 0);
        read(span.leader((span.node + span.n_nodes - distance) % span.n_nodes), round, nullptr, 0);
    }
}

void InternodeStep::end_by(const fabric::ControlInbox::Stray& stray) const {
    constexpr const char* kRight =
        "right would be the same collective with the same nelems on all members, HEDDLE_CHECK=1 names both calls";
    constexpr uint64_t kBytes = (uint64_t{1} << kKindShift) - 1;
    const uint64_t theirs = stray.call >> kKindShift, own = call_ >> kKindShift;
    const char* const function = coll_.call.function;
    const auto team = collective::name_of(coll_.team);
    if (stray.step != number_ && theirs == static_cast<uint64_t>(StepKind::kExchange))
        base::fatal(function,
                    "PE %d has sent this PE more, in an earlier exchange on %s, than this PE expected: right would be "
                    "lists of neighbors in which both name each other as often, with the same bytes",
                    stray.pe, team.data());
    if (stray.step != number_)
        base::fatal(function,
                    "argument nelems differed, or PE %d was in another collective on %s, in an earlier call: it was in "
                    "%s of %zu bytes, of which this PE has not read all; %s",
                    stray.pe, team.data(), name_of(theirs), static_cast<size_t>(stray.call & kBytes), kRight);
    if (theirs == own)
        base::fatal(function, "argument nelems differs: %zu bytes on this PE, %zu bytes on PE %d, in %s on %s; %s",
                    static_cast<size_t>(call_ & kBytes), static_cast<size_t>(stray.call & kBytes), stray.pe,
                    name_of(own), team.data(), kRight);
    base::fatal(function, "PE %d is in %s of %zu bytes while this PE is in %s of %zu bytes, both on %s: %s", stray.pe,
                name_of(theirs), static_cast<size_t>(stray.call & kBytes), name_of(own),
                static_cast<size_t>(call_ & kBytes), team.data(), kRight);
}

void InternodeStep::send(int to_rank, uint32_t round, const void* data, size_t bytes) const {
    post(to_rank, key(round, 0), data, bytes);
    go(to_rank);
}

size_t InternodeStep::read_any(int from_rank, uint32_t round, void* data, size_t bytes) const {
    return take(from_rank, key(round, 0), data, bytes);
}

void InternodeStep::read(int from_rank, uint32_t round, void* data, size_t bytes) const {
    require_length(from_rank, read_any(from_rank, round, data, bytes), bytes);
}

void InternodeStep::require_length(int from_rank, size_t bytes, size_t expected) const {
    if (bytes != expected)
        base::fatal(
            coll_.call.function,
            "argument nelems differs, or PE %d is in another collective on %s: it has sent %zu bytes where this "
            "PE expects %zu; right would be the same collective with the same nelems on all members, "
            "HEDDLE_CHECK=1 names both calls",
            coll_.pe(from_rank), name_of(coll_.team).data(), bytes, expected);
}

// A control message that is not full is the last.
void InternodeStep::send_all(int to_rank, uint32_t round, const std::vector<char>& data) const {
    for (size_t at = 0, piece = 0; at <= data.size(); at += kMaxControlBytes, ++piece)
        post(to_rank, key(round, piece), data.data() + at, std::min(kMaxControlBytes, data.size() - at));
    go(to_rank);
}

std::vector<char> InternodeStep::read_all(int from_rank, uint32_t round) const {
    std::vector<char> data;
    size_t length = kMaxControlBytes;
    for (uint32_t piece = 0; length == kMaxControlBytes; ++piece) {
        char message[kMaxControlBytes];
        length = take(from_rank, key(round, piece), message, sizeof message);
        if (length > sizeof message)
            require_length(from_rank, length, sizeof message);
        data.insert(data.end(), message, message + length);
    }
    return data;
}

void InternodeStep::wait_at(int from_rank, uint32_t round, size_t bytes) const {
    size_t here = 0;
    do {
        size_t part = 0;
        read(from_rank, round, &part, sizeof part);
        if (part > bytes - here || (part == 0 && bytes != 0))
            require_length(from_rank, here + std::min(part, SIZE_MAX - here), bytes);
        here += part;
    } while (here < bytes);
}

namespace {

// Takes the data of one node out of what its leader, or another one, has sent: a size, and as many bytes. Returns the
// place behind it. What ends before that ends the PE.
size_t take_data(const InternodeStep& step, int from_rank, const std::vector<char>& message, size_t at,
                 std::vector<char>& data) {
    size_t bytes = 0;
    if (message.size() - at < sizeof bytes)
        step.require_length(from_rank, message.size(), at + sizeof bytes);
    memcpy(&bytes, message.data() + at, sizeof bytes);
    at += sizeof bytes;
    if (message.size() - at < bytes)
        step.require_length(from_rank, message.size(), at + bytes);
    data.assign(message.data() + at, message.data() + at + bytes);
    return at + bytes;
}

}  // namespace

// Dissemination (as in leaders_barrier) to three at once: what a leader knows goes to those 1, 2 and 3 times as far
// behind as it knows nodes, and comes from those before.
std::vector<std::vector<char>> exchange_between_leaders(const CollectiveCall& coll, const InternodeStep& step,
                                                        std::vector<char> mine) {
    constexpr int kFanOut = 3;
    const team::Span& span = *coll.team.span;
    const int n_nodes = span.n_nodes;
    const auto node_behind = [&](int distance) { return (span.node + distance) % n_nodes; };
    std::vector<std::vector<char>> of_nodes(static_cast<size_t>(n_nodes));
    const auto data_of = [&](int distance) -> std::vector<char>& {
        return of_nodes[static_cast<size_t>(node_behind(distance))];
    };
    data_of(0) = std::move(mine);
    uint32_t round = 0;
    for (int known = 1; known < n_nodes; known *= kFanOut + 1, round += kFanOut) {
        const auto share = [&](int other) { return std::min(known, n_nodes - other * known); };
        for (int other = 1; other <= kFanOut && other * known < n_nodes; ++other) {
            std::vector<char> message;
            for (int i = 0; i < share(other); ++i) {
                const size_t bytes = data_of(i).size();
                append(message, &bytes, sizeof bytes);
                append(message, data_of(i).data(), bytes);
            }
            step.send_all(span.leader(node_behind(n_nodes - other * known)), round + static_cast<uint32_t>(other),
                          message);
        }
        for (int other = 1; other <= kFanOut && other * known < n_nodes; ++other) {
            const int from = span.leader(node_behind(other * known));
            const std::vector<char> message = step.read_all(from, round + static_cast<uint32_t>(other));
            size_t at = 0;
            for (int i = 0; i < share(other); ++i) at = take_data(step, from, message, at, data_of(other * known + i));
            step.require_length(from, message.size(), at);
        }
    }
    return of_nodes;
}

}  // namespace heddle::collective
