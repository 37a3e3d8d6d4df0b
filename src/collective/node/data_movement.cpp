#include "collective/node/data_movement.h"

#include "base/error.h"
#include "collective/algorithm_table.h"
#include "collective/internode/internode.h"
#include "collective/node/copy.h"
#include "operations/check.h"

#include <algorithm>
#include <cstring>

namespace heddle::collective {

namespace {

using operations::extent;

Shape shape_of(size_t nelems, const void* dest, const void* source) {
    return {{{"nelems", static_cast<int64_t>(nelems)}}, dest, source};
}

// Copies each member's part, all of one size, from inline data or bounce buffers into dest, in order of rank.
template <class PartOf>
void read_parts(const CollectiveCall& coll, const Copier& copy, char* dest, size_t bytes, PartOf part_of) {
    for (int rank = 0; rank < coll.size(); ++rank) copy(dest + static_cast<size_t>(rank) * bytes, part_of(rank), bytes);
}

// Visits all ranks, this member's neighbour first, so that not all write to the same member at once.
template <class Visit>
void from_next(const CollectiveCall& coll, Visit visit) {
    for (int i = 1; i <= coll.size(); ++i) visit((coll.rank() + i) % coll.size());
}

// Writes this member's part into the dest of all members, at offset; each thread moves its share.
void push_to_all(const CollectiveCall& coll, const Copier& copy, const Buffer& dest, size_t offset, const char* from,
                 size_t bytes) {
    const ThreadGroup::Share share = coll.thread_group.share_of(bytes, ThreadGroup::kLineBytes);
    from_next(coll,
              [&](int rank) { copy(dest.on(coll.pe(rank)) + offset + share.begin, from + share.begin, share.size()); });
}

// True when one of several threads does the operation for all: when select does not choose `for_many`.
bool is_for_one_thread(const Call& call, const Group& group, Operation operation, size_t bytes, Algorithm for_many) {
    if (group.threads == 1)
        return false;
    if (spans_nodes(call, group))
        return sharers_of(bytes, group.threads) == 1;
    return select(operation, bytes, team_of(call, group).members.size) != for_many;
}

}  // namespace

int broadcast(const Call& call, const Group& group, void* dest, const void* source, size_t nelems, size_t element_bytes,
              int root) {
    const size_t bytes = extent(call.function, nelems, element_bytes);
    if (is_for_one_thread(call, group, Operation::kBroadcast, bytes, Algorithm::kPull))
        return by_one_thread(call, group, [=, &call](const Group& alone) {
            broadcast(call, alone, dest, source, nelems, element_bytes, root);
        });
    Shape shape = shape_of(nelems, dest, source);
    shape.arguments[1] = {kRootArgument, root};
    CollectiveCall coll(call, group, shape);
    MemberState& state = coll.state;
    if (root < 0 || root >= coll.size())
        base::fatal(call.function, "PE_root %d is out of range: the team has PEs 0 to %d", root, coll.size() - 1);
    const Buffer to(call, "dest", dest, bytes), from(call, "source", source, bytes);
    check_in_place(call, dest, source, bytes);
    if (coll.team.span) {
        internode::broadcast(coll, dest, source, bytes, root, group.kind != Group::kActiveSet);
        return 0;
    }
    const bool is_root = coll.rank() == root;
    const Algorithm algorithm = select(Operation::kBroadcast, bytes, coll.size());
    const ThreadGroup::Share share = coll.thread_group.share_of(bytes, ThreadGroup::kLineBytes);
    char* const mine = static_cast<char*>(dest) + share.begin;
    const Copier copy(bytes * (static_cast<size_t>(coll.size()) + 1));

    uint32_t step = 0;
    coll.thread_group.by_one([&] {
        step = team::begin_publish(call, state);
        if (!is_root)
            return team::await(call, state, root, step);
        if (algorithm == Algorithm::kInline)
            copy(state.inline_data(root, step), static_cast<const char*>(source), bytes);
        else if (algorithm == Algorithm::kPush)
            from_next(coll, [&](int rank) {
                if (rank != root)
                    copy(to.on(coll.pe(rank)), static_cast<const char*>(source), bytes);
            });
        team::publish(state, step);
    });
    if (is_root) {
        if (group.kind != Group::kActiveSet)
            copy(mine, static_cast<const char*>(source) + share.begin, share.size());
    } else if (algorithm == Algorithm::kInline) {
        copy(mine, state.inline_data(root, step), bytes);
    } else if (algorithm == Algorithm::kPull) {
        copy(mine, from.on(coll.pe(root)) + share.begin, share.size());
    }
    if (algorithm == Algorithm::kPull)
        coll.barrier();  // until all have read the root's source
    return 0;
}

int collect(const Call& call, const Group& group, void* dest, const void* source, size_t nelems, size_t element_bytes) {
    const size_t bytes = extent(call.function, nelems, element_bytes);
    if (group.threads > 1 && spans_nodes(call, group) && sharers_of(bytes, group.threads) == 1)
        return by_one_thread(
            call, group, [=, &call](const Group& alone) { collect(call, alone, dest, source, nelems, element_bytes); });
    CollectiveCall coll(call, group, Shape{{}, dest, source});
    MemberState& state = coll.state;
    const Buffer from(call, "source", source, bytes);
    if (coll.team.span) {
        internode::collect(coll, dest, source, bytes, false);
        return 0;
    }
    const auto by_bounce = [&](size_t part) {
        return select(Operation::kCollect, part, coll.size()) == Algorithm::kBounce;
    };

    const uint32_t step = state.count + 1;
    coll.barrier_with([&] {
        memcpy(team::next_inline_data(state), &bytes, sizeof bytes);
        char* const bounced = team::next_bounce(state);
        if (by_bounce(bytes) && bytes != 0)
            memcpy(bounced, source, bytes);
    });

    size_t total = 0, before_me = 0;
    bool all_by_bounce = true;
    const auto part_bytes = [&](int rank) {
        size_t part;
        memcpy(&part, state.inline_data(rank, step), sizeof part);
        return part;
    };
    for (int rank = 0; rank < coll.size(); ++rank) {
        if (rank == coll.rank())
            before_me = total;
        total += part_bytes(rank);
        all_by_bounce &= by_bounce(part_bytes(rank));
    }
    const Buffer to(call, "dest", dest, total);
    const Copier copy(total * (static_cast<size_t>(coll.size()) + 1));
    coll.thread_group.by_one([&] {
        char* at = static_cast<char*>(dest);
        for (int rank = 0; rank < coll.size(); at += part_bytes(rank), ++rank)
            if (by_bounce(part_bytes(rank)))
                copy(at, state.bounced(rank), part_bytes(rank));
    });
    if (!by_bounce(bytes))
        push_to_all(coll, copy, to, before_me, static_cast<const char*>(source), bytes);
    if (!all_by_bounce)
        coll.barrier();
    return 0;
}

int fcollect(const Call& call, const Group& group, void* dest, const void* source, size_t nelems,
             size_t element_bytes) {
    const size_t bytes = extent(call.function, nelems, element_bytes);
    if (is_for_one_thread(call, group, Operation::kFcollect, bytes, Algorithm::kPush))
        return by_one_thread(call, group, [=, &call](const Group& alone) {
            fcollect(call, alone, dest, source, nelems, element_bytes);
        });
    CollectiveCall coll(call, group, shape_of(nelems, dest, source));
    MemberState& state = coll.state;
    const size_t total = extent(call.function, bytes, static_cast<size_t>(coll.size()));
    const Buffer to(call, "dest", dest, total), from(call, "source", source, bytes);
    if (coll.team.span) {
        internode::collect(coll, dest, source, bytes, true);
        return 0;
    }
    const Copier copy((total + bytes) * static_cast<size_t>(coll.size()));
    const char* const mine = static_cast<const char*>(source);
    char* const all = static_cast<char*>(dest);
    const uint32_t step = state.count + 1;
    switch (select(Operation::kFcollect, bytes, coll.size())) {
        case Algorithm::kInline:
            copy(team::next_inline_data(state), mine, bytes);
            coll.barrier();
            read_parts(coll, copy, all, bytes, [&](int rank) { return state.inline_data(rank, step); });
            break;
        case Algorithm::kBounce:
            copy(team::next_bounce(state), mine, bytes);
            coll.barrier();
            read_parts(coll, copy, all, bytes, [&](int rank) { return state.bounced(rank); });
            break;
        default:
            coll.thread_group.gather();  // the source is ready
            push_to_all(coll, copy, to, static_cast<size_t>(coll.rank()) * bytes, mine, bytes);
            coll.barrier();
    }
    return 0;
}

int alltoall(const Call& call, const Group& group, void* dest, const void* source, size_t nelems,
             size_t element_bytes) {
    const size_t bytes = extent(call.function, nelems, element_bytes);  // of one block
    const auto all_blocks = [&](int size) { return extent(call.function, bytes, static_cast<size_t>(size)); };
    if (group.threads > 1 && is_for_one_thread(call, group, Operation::kAlltoall,
                                               all_blocks(team_of(call, group).members.size), Algorithm::kPush))
        return by_one_thread(call, group, [=, &call](const Group& alone) {
            alltoall(call, alone, dest, source, nelems, element_bytes);
        });
    CollectiveCall coll(call, group, shape_of(nelems, dest, source));
    MemberState& state = coll.state;
    const size_t total = all_blocks(coll.size());
    const Buffer to(call, "dest", dest, total), from(call, "source", source, total);
    if (coll.team.span) {
        internode::alltoall(coll, {dest, source, 1, bytes, bytes, bytes});
        return 0;
    }
    const Copier copy(2 * total * static_cast<size_t>(coll.size()));
    const char* const mine = static_cast<const char*>(source);
    char* const all = static_cast<char*>(dest);
    const size_t my_block = static_cast<size_t>(coll.rank()) * bytes;
    const ThreadGroup::Share share = coll.thread_group.share_of(bytes, ThreadGroup::kLineBytes);
    const uint32_t step = state.count + 1;
    switch (select(Operation::kAlltoall, total, coll.size())) {
        case Algorithm::kInline:
            copy(team::next_inline_data(state), mine, total);
            coll.barrier();
            read_parts(coll, copy, all, bytes, [&](int rank) { return state.inline_data(rank, step) + my_block; });
            break;
        case Algorithm::kBounce:
            copy(team::next_bounce(state), mine, total);
            coll.barrier();
            read_parts(coll, copy, all, bytes, [&](int rank) { return state.bounced(rank) + my_block; });
            break;
        default:
            coll.thread_group.gather();  // the source is ready
            from_next(coll, [&](int rank) {
                copy(to.on(coll.pe(rank)) + my_block + share.begin,
                     mine + static_cast<size_t>(rank) * bytes + share.begin, share.size());
            });
            coll.barrier();
    }
    return 0;
}

int alltoalls(const Call& call, const Group& group, void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst,
              size_t nelems, size_t element_bytes) {
    const auto all_elements = [&](int size) { return extent(call.function, nelems, static_cast<size_t>(size)); };
    if (group.threads > 1 &&
        is_for_one_thread(call, group, Operation::kAlltoall,
                          extent(call.function, all_elements(team_of(call, group).members.size), element_bytes),
                          Algorithm::kPush))
        return by_one_thread(call, group, [=, &call](const Group& alone) {
            alltoalls(call, alone, dest, source, dst, sst, nelems, element_bytes);
        });
    Shape shape = shape_of(nelems, dest, source);
    shape.arguments[1] = {"dst", dst};
    shape.arguments[2] = {"sst", sst};
    CollectiveCall coll(call, group, shape);
    if (dst < 1 || sst < 1)
        base::fatal(call.function, "dst %td, sst %td: right would be 1 or more", dst, sst);
    const size_t to_step = extent(call.function, static_cast<size_t>(dst), element_bytes);
    const size_t from_step = extent(call.function, static_cast<size_t>(sst), element_bytes);
    // Element i of the block for member k lies at (k * nelems + i) strides; the last element of all ends the buffer.
    const size_t elements = all_elements(coll.size());
    const auto span = [&](size_t step) {
        return elements == 0 ? 0 : extent(call.function, elements - 1, step) + element_bytes;
    };
    const Buffer to(call, "dest", dest, span(to_step)), from(call, "source", source, span(from_step));
    if (coll.team.span) {
        internode::alltoall(coll, {dest, source, nelems, element_bytes, to_step, from_step});
        return 0;
    }
    const size_t my_block = static_cast<size_t>(coll.rank()) * nelems * to_step;
    // A thread's share is of the elements for all members, this member's neighbour first. So shares are alike, however
    // few or short the blocks are.
    const size_t unit = std::max<size_t>(1, ThreadGroup::kLineBytes / to_step);
    const ThreadGroup::Share share = coll.thread_group.share_of(elements, unit);
    coll.thread_group.gather();  // the source is ready
    for (size_t at = share.begin, count = 0; at < share.end; at += count) {
        const size_t first = at % nelems,
                     rank = (static_cast<size_t>(coll.rank()) + 1 + at / nelems) % static_cast<size_t>(coll.size());
        count = std::min(nelems - first, share.end - at);
        copy_strided(to.on(coll.pe(static_cast<int>(rank))) + my_block + first * to_step,
                     static_cast<const char*>(source) + (rank * nelems + first) * from_step, to_step, from_step, count,
                     element_bytes);
    }
    coll.barrier();
    return 0;
}

}  // namespace heddle::collective
