#include "collective/node/reduce.h"

#include "base/error.h"
#include "collective/algorithm_table.h"
#include "collective/internode/internode.h"
#include "collective/reduction_order.h"
#include "operations/check.h"

#include <algorithm>
#include <cstring>

namespace heddle::collective {

namespace {

// A slice is worked on in blocks that stay in the first-level cache from the first member's source to the last dest.
constexpr size_t kBlockBytes = 8192;

// A reduction or a scan whose call has begun.
struct Work {
    CollectiveCall& coll;
    Kernel kernel;
    Kind kind;
    size_t element_bytes;
    size_t nelems;
    Buffer to;
    Buffer from;
    bool in_place;

    size_t bytes() const { return nelems * element_bytes; }
    bool is_tree_order() const { return collective::is_tree_order(kind, coll.size(), bytes()); }
    char* dest(int rank, size_t element) const { return to.on(coll.pe(rank)) + element * element_bytes; }
    const char* source(int rank, size_t element) const { return from.on(coll.pe(rank)) + element * element_bytes; }
};

// Elements of a cache line.
size_t line_of(const Work& work) {
    return std::max<size_t>(1, ThreadGroup::kLineBytes / work.element_bytes);
}

// The elements that this thread of this member computes for all members: whole cache lines, so that no two threads
// write to one line.
ThreadGroup::Share slice_of(const Work& work) {
    const size_t line = line_of(work);
    const size_t size = static_cast<size_t>(work.coll.size()), rank = static_cast<size_t>(work.coll.rank());
    const size_t each = (work.nelems / size + line) / line * line;
    const size_t begin = std::min(work.nelems, rank * each), end = std::min(work.nelems, (rank + 1) * each);
    const ThreadGroup::Share share = work.coll.thread_group.share_of(end - begin, line);
    return {begin + share.begin, begin + share.end};
}

// Calls body(first element, number of elements) for each block of this thread's slice.
template <class Body>
void for_blocks(const Work& work, Body body) {
    const ThreadGroup::Share slice = slice_of(work);
    const size_t block = kBlockBytes / work.element_bytes;
    for (size_t at = slice.begin; at < slice.end; at += block) body(at, std::min(block, slice.end - at));
}

// Publishes this member's source as inline data or in a bounce buffer. After the barrier calls finish(parts), where
// parts(rank) is each member's source.
template <class Finish>
void by_bounce(const Work& work, const void* source, Finish finish) {
    CollectiveCall& coll = work.coll;
    MemberState& state = coll.state;
    const size_t bytes = work.bytes();
    const bool short_enough = bytes <= team::kInlineBytes;
    char* const mine = short_enough ? team::next_inline_data(state) : team::next_bounce(state);
    if (bytes != 0)
        memcpy(mine, source, bytes);
    const uint32_t step = state.count + 1;
    coll.barrier();
    finish([&](int rank) -> const char* { return short_enough ? state.inline_data(rank, step) : state.bounced(rank); });
}

// dest = the parts of members 0 to last, combined in that order.
template <class Parts>
void combine_parts(const Work& work, char* dest, int last, Parts parts) {
    if (last == 0) {
        memcpy(dest, parts(0), work.bytes());
        return;
    }
    work.kernel(dest, parts(0), parts(1), work.nelems);
    for (int rank = 2; rank <= last; ++rank) work.kernel(dest, dest, parts(rank), work.nelems);
}

// sum = sum combined with the inline data of members first to last, in that order. begins: sum has no value yet.
void add_inline_data(const Work& work, char* sum, bool begins, int first, int last, uint32_t step) {
    MemberState& state = work.coll.state;
    for (int rank = first; rank <= last; ++rank) {
        team::await(work.coll.call, state, rank, step);
        if (begins && rank == first)
            memcpy(sum, state.inline_data(rank, step), work.bytes());
        else
            work.kernel(sum, sum, state.inline_data(rank, step), work.nelems);
    }
}

// The members of a block. In a larger team each member adds up only its block's sources.
constexpr int kBlock = 16;

// before = the sum of the members before this one, each of which has published its source in `step`. A block's first
// member publishes the sum of all blocks before. Another member adds the sources of its block to that sum. The order is
// that of the ranks, and each member awaits at most kBlock + 1 others.
void sum_before(const Work& work, char* before, uint32_t step) {
    MemberState& state = work.coll.state;
    const int me = state.rank, first = me / kBlock * kBlock;
    if (state.size() <= kBlock)
        return add_inline_data(work, before, true, 0, me - 1, step);
    const uint32_t sums = team::begin_publish(work.coll.call, state);
    const auto await_sum = [&](int rank) {
        team::await(work.coll.call, state, rank, sums);
        memcpy(before, state.inline_data(rank, sums), work.bytes());
    };
    if (me != first) {
        if (first != 0)
            await_sum(first);
        add_inline_data(work, before, first == 0, first, me - 1, step);
    } else if (me != 0) {
        const int last_first = first - kBlock;
        if (last_first != 0)
            await_sum(last_first);
        add_inline_data(work, before, last_first == 0, last_first, me - 1, step);
        memcpy(state.inline_data(me, sums), before, work.bytes());
        team::publish(state, sums);
    }
}

// A prefix sum of at most kInlineBytes, in publish steps: no member waits for those behind it. Where PEs share cores,
// each member adds its source to the sum that the member before published: the least work. Otherwise that chain would
// be the delay, and each member publishes its source and adds up those before it, in the same order.
void scan_by_publishing(const Work& work, Prefix prefix, char* dest, const void* source) {
    const Call& call = work.coll.call;
    MemberState& state = work.coll.state;
    const uint32_t step = team::begin_publish(call, state, !team::is_oversubscribed() && state.size() > kBlock ? 1 : 0);
    char* const mine = state.inline_data(state.rank, step);
    alignas(16) char before[team::kInlineBytes];  // the sum of the members before this one
    memset(before, 0, work.bytes());
    if (team::is_oversubscribed() && state.rank > 0) {
        team::await(call, state, state.rank - 1, step);
        memcpy(before, state.inline_data(state.rank - 1, step), work.bytes());
        work.kernel(mine, before, source, work.nelems);
        team::publish(state, step);
    } else {
        memcpy(mine, source, work.bytes());
        team::publish(state, step);
        if (!team::is_oversubscribed())
            sum_before(work, before, step);
    }
    if (prefix == Prefix::kExclusive)
        memcpy(dest, before, work.bytes());
    else if (state.rank == 0)
        memmove(dest, source, work.bytes());
    else
        work.kernel(dest, before, source, work.nelems);
}

void reduce_slice(const Work& work) {
    const int size = work.coll.size(), me = work.coll.rank();
    alignas(ThreadGroup::kLineBytes) char aside[kBlockBytes];
    const bool is_tree = work.is_tree_order();
    const Copier copy(2 * work.bytes() * static_cast<size_t>(size));
    for_blocks(work, [&](size_t at, size_t count) {
        const size_t bytes = count * work.element_bytes;
        // In place, this member's dest is a source that is not yet read when the third member's source is added.
        const bool into_dest = !copy.streams() && !(work.in_place && size > 2);
        char* const result = into_dest ? work.dest(me, at) : aside;
        if (is_tree) {
            combine_as_tree(
                work.kernel, result, size, [&](int rank) { return work.source(rank, at); }, count, work.element_bytes);
        } else {
            work.kernel(result, work.source(0, at), work.source(1, at), count);
            for (int rank = 2; rank < size; ++rank) work.kernel(result, result, work.source(rank, at), count);
        }
        for (int i = 0; i < size; ++i) {
            copy(work.dest((me + i) % size, at), result, bytes);
        }
    });
}

void scan_slice(const Work& work, Prefix prefix) {
    const int size = work.coll.size();
    const Copier copy(2 * work.bytes() * static_cast<size_t>(size));
    alignas(ThreadGroup::kLineBytes) char first[kBlockBytes], second[kBlockBytes];
    for_blocks(work, [&](size_t at, size_t count) {
        const size_t bytes = count * work.element_bytes;
        char *sum = first, *next = second;  // the sum up to this member, and up to the next
        memcpy(sum, work.source(0, at), bytes);
        if (prefix == Prefix::kInclusive)
            copy(work.dest(0, at), sum, bytes);
        else
            memset(work.dest(0, at), 0, bytes);
        for (int rank = 1; rank < size; ++rank) {
            work.kernel(next, sum, work.source(rank, at), count);  // before dest is written, which may be the source
            copy(work.dest(rank, at), prefix == Prefix::kInclusive ? next : sum, bytes);
            std::swap(sum, next);
        }
    });
}

// The result of a team of one member. In place there is nothing to copy; otherwise no two threads' shares overlap.
void copy_share(const Work& work) {
    const ThreadGroup::Share share = work.coll.thread_group.share_of(work.nelems, line_of(work));
    if (!work.in_place)
        memmove(work.dest(0, share.begin), work.source(0, share.begin), share.size() * work.element_bytes);
}

// The algorithm for a reduction or scan of `bytes` among `size` members.
Algorithm algorithm_for(Operation operation, size_t bytes, int size) {
    return bytes == 0 ? Algorithm::kBounce : select(operation, bytes, size);
}

// True when one of several threads does the operation for all: when there are no slices to share.
bool is_for_one_thread(const Call& call, const Group& group, Operation operation, size_t nelems, size_t element_bytes) {
    if (group.threads == 1)
        return false;
    const size_t bytes = operations::extent(call.function, nelems, element_bytes);
    if (spans_nodes(call, group))
        return sharers_of(bytes, group.threads) == 1;
    return algorithm_for(operation, bytes, team_of(call, group).members.size) != Algorithm::kSliced;
}

// Begins the call, then runs alone(work) for a team of one or slices(work) between two barriers. Small data: one thread
// runs short_way(work, algorithm). A team that spans nodes: one thread runs far_way(work).
template <class Alone, class FarRule, class ShortRule, class Slices>
int run(const Call& call, const Group& group, Operation operation, const char* count_name, Op op, Kind kind, void* dest,
        const void* source, size_t nelems, size_t element_bytes, Alone alone, FarRule far_way, ShortRule short_way,
        Slices slices) {
    CollectiveCall coll(call, group, {{{count_name, static_cast<int64_t>(nelems)}}, dest, source});
    const size_t bytes = operations::extent(call.function, nelems, element_bytes);
    const Work work = {coll,
                       machine.kernels->of[static_cast<int>(op)][static_cast<int>(kind)],
                       kind,
                       element_bytes,
                       nelems,
                       Buffer(call, "dest", dest, bytes),
                       Buffer(call, "source", source, bytes),
                       dest == source};
    check_in_place(call, dest, source, bytes);
    if (coll.team.span) {
        far_way(work);
        return 0;
    }
    if (coll.size() == 1) {
        coll.thread_group.gather();  // the source is ready
        if (bytes != 0)
            alone(work);
        coll.thread_group.gather();  // all shares are done
        return 0;
    }
    const Algorithm algorithm = algorithm_for(operation, bytes, coll.size());
    if (algorithm != Algorithm::kSliced) {
        short_way(work, algorithm);
    } else {
        coll.barrier();  // all sources are ready
        slices(work);
        coll.barrier();  // all slices are done
    }
    return 0;
}

}  // namespace

int reduce(const Call& call, const Group& group, Op op, Kind kind, void* dest, const void* source, size_t nelems,
           size_t element_bytes) {
    if (is_for_one_thread(call, group, Operation::kReduce, nelems, element_bytes))
        return by_one_thread(call, group, [=, &call](const Group& alone) {
            reduce(call, alone, op, kind, dest, source, nelems, element_bytes);
        });
    return run(
        call, group, Operation::kReduce, "nreduce", op, kind, dest, source, nelems, element_bytes, copy_share,
        [&](const Work& work) { internode::reduce(work.coll, work.kernel, kind, dest, source, nelems, element_bytes); },
        [&](const Work& work, Algorithm) {
            by_bounce(work, source, [&](auto parts) {
                if (nelems == 0)
                    return;
                if (work.is_tree_order())
                    combine_as_tree(work.kernel, static_cast<char*>(dest), work.coll.size(), parts, nelems,
                                    element_bytes);
                else
                    combine_parts(work, static_cast<char*>(dest), work.coll.size() - 1, parts);
            });
        },
        reduce_slice);
}

int scan(const Call& call, const Group& group, Prefix prefix, Kind kind, void* dest, const void* source, size_t nelems,
         size_t element_bytes) {
    if (is_for_one_thread(call, group, Operation::kScan, nelems, element_bytes))
        return by_one_thread(call, group, [=, &call](const Group& alone) {
            scan(call, alone, prefix, kind, dest, source, nelems, element_bytes);
        });
    const auto zero = [&](const Work& work) {
        const ThreadGroup::Share share = work.coll.thread_group.share_of(work.nelems, line_of(work));
        memset(work.dest(work.coll.rank(), share.begin), 0, share.size() * element_bytes);
    };
    return run(
        call, group, Operation::kScan, "nelems", Op::kSum, kind, dest, source, nelems, element_bytes,
        [&](const Work& work) {
            if (prefix == Prefix::kInclusive)
                copy_share(work);
            else
                zero(work);
        },
        [&](const Work& work) {
            internode::scan(work.coll, work.kernel, kind, prefix == Prefix::kInclusive, dest, source, nelems,
                            element_bytes);
        },
        [&](const Work& work, Algorithm algorithm) {
            if (algorithm == Algorithm::kInline)
                return scan_by_publishing(work, prefix, static_cast<char*>(dest), source);
            by_bounce(work, source, [&](auto parts) {
                const int last = work.coll.rank() - (prefix == Prefix::kExclusive);
                if (nelems == 0)
                    return;
                if (last < 0)
                    zero(work);
                else
                    combine_parts(work, static_cast<char*>(dest), last, parts);
            });
        },
        [&](const Work& work) { scan_slice(work, prefix); });
}

size_t require_count(const Call& call, int nreduce) {
    if (nreduce < 0)
        base::fatal(call.function, "nreduce is %d: right would be 0 or more", nreduce);
    return static_cast<size_t>(nreduce);
}

}  // namespace heddle::collective
