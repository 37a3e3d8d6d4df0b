#include "collective/exchange.h"

#include "base/error.h"
#include "collective/node/copy.h"
#include "collective/nonblocking.h"
#include "operations/check.h"
#include "operations/observer.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace heddle::collective {

namespace {

using operations::extent;

uint32_t publish(CollectiveCall& coll, bool starts_again = false) {
    const uint32_t step = team::begin_publish(coll.call, coll.state);
    if (starts_again)
        memcpy(coll.state.inline_data(coll.state.rank, step), &kStartedAgain, sizeof kStartedAgain);
    team::publish(coll.state, step);
    return step;
}

void await_start(const CollectiveCall& coll, int member, uint32_t step) {
    team::await(coll.call, coll.state, member, step);
    size_t theirs;
    memcpy(&theirs, coll.state.inline_data(member, step), sizeof theirs);
    if (theirs != kStartedAgain)
        end_by_start(coll, member, true);
}

// The offset of a block in bytes behind dest or source.
size_t offset_of(const Call& call, size_t elements, size_t element_bytes) {
    return extent(call.function, elements, element_bytes);
}

// `name`[place] as an argument in messages; of the kind without counts, `name` itself.
std::array<char, 64> name_of_block(ExchangeKind kind, const char* name, size_t place) {
    std::array<char, 64> text = {};
    if (kind == ExchangeKind::kNeighborAlltoall)
        snprintf(text.data(), text.size(), "block %zu of %s,", place, name);
    else
        snprintf(text.data(), text.size(), "%s + %s_offsets[%zu]", name, name, place);
    return text;
}

}  // namespace

Exchange::Exchange(const Call& call, const team::Team& team, const ExchangeArguments& arguments)
    : kind_(arguments.kind),
      dest_(static_cast<char*>(arguments.dest)),
      source_(static_cast<const char*>(arguments.source)),
      element_bytes_(arguments.element_bytes) {
    add_all(call, team, arguments);
    require_blocks(call);
    const int size = team.members.size;
    std::stable_sort(blocks_.begin(), blocks_.end(), [&](const ExchangeBlock& one, const ExchangeBlock& other) {
        const auto distance = [&](int rank) { return (rank - team.rank - 1 + size) % size; };
        return distance(one.rank) < distance(other.rank);
    });
    for (const ExchangeBlock& block : blocks_) bytes_ += block.sent;
    remote_ = internode::RemoteBlocks(team, kind_, dest_, source_, blocks_);
}

void Exchange::add_all(const Call& call, const team::Team& team, const ExchangeArguments& arguments) {
    const int size = team.members.size;
    const bool is_for_all = kind_ == ExchangeKind::kAlltoallv;
    const size_t count = is_for_all ? static_cast<size_t>(size) : arguments.nneighbors;
    if (count == 0)
        return;
    if (!is_for_all)
        operations::require_pointer(call.function, "neighbors", arguments.neighbors);
    if (kind_ != ExchangeKind::kNeighborAlltoall) {
        operations::require_pointer(call.function, "dest_counts", arguments.dest_counts);
        operations::require_pointer(call.function, "dest_offsets", arguments.dest_offsets);
        operations::require_pointer(call.function, "source_counts", arguments.source_counts);
        operations::require_pointer(call.function, "source_offsets", arguments.source_offsets);
    }
    if (count > blocks_.max_size())
        base::fatal(call.function, "nneighbors is %zu, more than fit in memory: right would be the length of neighbors",
                    count);
    blocks_.reserve(count);
    for (size_t i = 0; i < count; ++i) {
        const int rank = is_for_all ? static_cast<int>(i) : arguments.neighbors[i];
        if (rank < 0 || rank >= size)
            base::fatal(call.function, "neighbors[%zu] is %d, which is out of range: the team has PEs 0 to %d", i, rank,
                        size - 1);
        const auto bytes = [&](size_t elements) { return offset_of(call, elements, element_bytes_); };
        // Where nothing is, may be anything, as in MPI.
        const auto offset = [&](const size_t* counts, const size_t* offsets) {
            return counts[i] == 0 ? 0 : bytes(offsets[i]);
        };
        if (kind_ == ExchangeKind::kNeighborAlltoall)
            blocks_.push_back({rank, i, bytes(i), element_bytes_, bytes(i), element_bytes_});
        else
            blocks_.push_back(
                {rank, i, offset(arguments.dest_counts, arguments.dest_offsets), bytes(arguments.dest_counts[i]),
                 offset(arguments.source_counts, arguments.source_offsets), bytes(arguments.source_counts[i])});
    }
}

void Exchange::require_blocks(const Call& call) const {
    const memory::SymmetricRegion& heap = memory::symmetric->heap;
    const auto require = [&](const char* name, const char* address, size_t bytes, size_t place) {
        if (bytes != 0 && (base::settings.check || !heap.holds(address) || bytes > heap.bytes_from(address)))
            operations::require_symmetric(call.function, name_of_block(kind_, name, place).data(), address, bytes,
                                          memory::symmetric->pe);
    };
    for (const ExchangeBlock& block : blocks_) {
        require("dest", dest_ + block.to, block.expected, block.place);
        require("source", source_ + block.from, block.sent, block.place);
    }
    if (base::settings.check)
        require_disjoint_blocks(call);
}

// What arrives has a place of its own; sources may be sent twice.
void Exchange::require_disjoint_blocks(const Call& call) const {
    struct Range {
        const char *begin, *end;
        bool is_dest;
        size_t place;
    };
    std::vector<Range> ranges;
    for (const ExchangeBlock& block : blocks_) {
        if (block.expected != 0)
            ranges.push_back({dest_ + block.to, dest_ + block.to + block.expected, true, block.place});
        if (block.sent != 0)
            ranges.push_back({source_ + block.from, source_ + block.from + block.sent, false, block.place});
    }
    std::sort(ranges.begin(), ranges.end(),
              [](const Range& one, const Range& other) { return one.begin < other.begin; });
    const Range *dest = nullptr, *any = nullptr;  // those that reach farthest, of those that begin before
    for (const Range& range : ranges) {
        const Range* const before = range.is_dest ? any : dest;
        if (before && before->end > range.begin)
            base::fatal(call.function,
                        "block %zu of %s [%p, %p) and block %zu of %s [%p, %p) overlap: right would be a place of its "
                        "own for each block of dest",
                        before->place, before->is_dest ? "dest" : "source", static_cast<const void*>(before->begin),
                        static_cast<const void*>(before->end), range.place, range.is_dest ? "dest" : "source",
                        static_cast<const void*>(range.begin), static_cast<const void*>(range.end));
        if (!any || range.end > any->end)
            any = &range;
        if (range.is_dest && (!dest || range.end > dest->end))
            dest = &range;
    }
}

void Exchange::tell_of_post(const Call& call) const {
    operations::Observer* const told = operations::find_observer();
    for (const ExchangeBlock& block : blocks_) {
        if (told && block.sent != 0)
            told->post_buffer(call, source_ + block.from, block.sent, false);
        if (told && block.expected != 0)
            told->post_buffer(call, dest_ + block.to, block.expected, true);
    }
}

// The members of this node show each other what they send. Each compares that with what it expects, and keeps from
// where it copies.
void Exchange::resolve(CollectiveCall& coll) {
    const team::MemberState& state = coll.state;
    // By member of this node: this member's blocks with it.
    std::vector<std::vector<ExchangeBlock>> mine(static_cast<size_t>(state.size()));
    std::vector<std::vector<TableEntry>> theirs(mine.size());
    std::vector<TableEntry> table;
    for (const ExchangeBlock& block : blocks_) {
        const int member = coll.team.span && coll.team.span->node_of[block.rank] != coll.team.span->node
                               ? -1
                               : state.members.rank(coll.pe(block.rank));
        if (member < 0)
            continue;
        if (mine[static_cast<size_t>(member)].empty() && member != state.rank)
            members_.push_back(member);
        mine[static_cast<size_t>(member)].push_back(block);
        table.push_back({coll.rank(), block.rank, block.from, block.sent, block.expected});
    }
    // The source of this member is ready behind the first barrier.
    exchange_tables(coll, table, [&](int member, const TableEntry* entries, size_t count) {
        if (mine[static_cast<size_t>(member)].empty())
            return;
        for (size_t i = 0; i < count; ++i)
            if (entries[i].to == coll.rank())
                theirs[static_cast<size_t>(member)].push_back(entries[i]);
    });
    for (const int member : members_)
        match(coll, member, mine[static_cast<size_t>(member)], theirs[static_cast<size_t>(member)]);
    const auto self = static_cast<size_t>(state.rank);
    match(coll, state.rank, mine[self], theirs[self]);
    if (base::settings.check && coll.team.span)
        remote_.compare(coll);
}

void Exchange::match(CollectiveCall& coll, int member, const std::vector<ExchangeBlock>& mine,
                     const std::vector<TableEntry>& theirs) {
    const int pe = coll.state.members.pe(member);
    if (mine.size() != theirs.size())
        base::fatal(coll.call.function,
                    "this PE names PE %d %zu times in neighbors, and PE %d names this PE %zu times: right would be as "
                    "often",
                    pe, mine.size(), pe, theirs.size());
    for (size_t i = 0; i < mine.size(); ++i) {
        if (theirs[i].sent != mine[i].expected)
            end_by_bytes(coll.call, kind_, mine[i], pe, mine[i].expected, theirs[i].sent);
        if (theirs[i].sent == 0)
            continue;
        const char* const from = operations::require_symmetric(coll.call.function, "source of a neighbor,",
                                                               source_ + theirs[i].offset, theirs[i].sent, pe);
        copies_.push_back({member, dest_ + mine[i].to, from, mine[i].expected});
    }
}

// ready: the step, of any number, in which members of this node publish that their sources are; none: they are.
void Exchange::copy(CollectiveCall& coll, std::optional<uint32_t> ready) const {
    const Copier copier(2 * bytes_ * static_cast<size_t>(coll.state.size()));
    int member = coll.state.rank;
    for (const Copy& piece : copies_) {
        if (ready && piece.member != member && piece.member != coll.state.rank)
            await_start(coll, piece.member, *ready);
        member = piece.member;
        copier(piece.to, piece.from, piece.bytes);
    }
}

void Exchange::run(const Call& call, const Group& group) {
    const Shape shape = {{{"the number of runs of its plan", runs_}}, dest_, source_};
    CollectiveCall coll(call, group, shape);
    if (operations::Observer* const told = operations::find_observer())
        for (const ExchangeBlock& block : blocks_) {
            told->use_buffer(call, source_ + block.from, block.sent, false);
            told->use_buffer(call, dest_ + block.to, block.expected, true);
        }
    const bool is_first = runs_++ == 0;
    std::optional<uint32_t> ready;
    if (is_first)
        resolve(coll);
    else if (coll.state.size() > 1)
        ready = publish(coll, true);
    if (coll.team.span) {
        const InternodeStep step(coll, StepKind::kExchange);
        remote_.begin(coll, step, is_first);
        copy(coll, ready);
        remote_.finish(coll, step, is_first);
    } else {
        copy(coll, ready);
    }
    if (coll.state.size() > 1) {
        const uint32_t done = publish(coll);
        for (const int member : members_) team::await(call, coll.state, member, done);
    }
}

int exchange(const Call& call, shmem_team_t handle, const ExchangeArguments& arguments) {
    Exchange(call, team_of(call, handle), arguments).run(call, handle);
    return 0;
}

int post_exchange(const Call& call, shmem_team_t handle, const ExchangeArguments& arguments, shmemx_request_t* req) {
    operations::require_pointer(call.function, "req", req);
    auto* const posted = new Exchange(call, team_of(call, handle), arguments);
    posted->is_kept = recording != nullptr;
    if (!posted->is_kept)
        posted->tell_of_post(call);
    const auto work = [posted](const Call& here, team::Team& instance) {
        posted->run(here, instance);
        if (!posted->is_kept)
            delete posted;
    };
    return post(call, handle, req, posted->bytes_to_other_nodes(), work, nullptr, posted);
}

}  // namespace heddle::collective
