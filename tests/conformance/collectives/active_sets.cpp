// The deprecated collectives on active sets, every function: sets of several starts, strides and sizes, against the
// same model as the collectives on teams. broadcast leaves the root's dest alone; pSync holds what it held; pWrk may be
// used, but nothing beside it.
#include "collectives.h"

#include <algorithm>

using namespace conformance;

namespace {

constexpr size_t kCapacity = 1 << 19;
constexpr size_t kSyncs = 64;  // at least as many as any of the SIZE constants
unsigned char static_source[kCapacity] __attribute__((aligned(64)));
Buffer dest, source, static_sources, work;
long psyncs[2][kSyncs];  // in turn, as programs have to

struct ActiveSet {
    int start, log_stride;
    Group group;
};

void sync(const ActiveSet& set, uint64_t turn) {
    // In turn, so that both are used everywhere.
    if (turn % 2)
        (shmem_sync)(set.start, set.log_stride, set.group.size, psyncs[0]);
    else
        shmem_barrier(set.start, set.log_stride, set.group.size, psyncs[0]);
    check_reached(turn % 2 ? "shmem_sync" : "shmem_barrier");
}

void check_psyncs() {
    for (const auto& psync : psyncs)
        for (long value : psync) CHECK_EQ(value, SHMEM_SYNC_VALUE);
}

void move(const old_move_row& row, const ActiveSet& set, uint64_t turn, Random& random) {
    const Group& group = set.group;
    Move what = random_move(row.op, row.info.bytes, group.size, kCapacity / 2, random, random.below(16) == 0);
    what.spares_root = row.op == MOVE_BROADCAST;
    dest.take(random.below(16) * row.info.bytes, what.dest_bytes(group.size));
    std::vector<unsigned char> expected(dest.bytes() + 8, Buffer::kFresh);
    const size_t bytes = what.source_bytes(group.rank, group.size);
    std::vector<unsigned char> mine(bytes + 8);
    what.fill_source(group.rank, group.size, mine.data());
    Buffer from = random.below(2) ? source : static_sources;
    from.take(random.below(16) * row.info.bytes, bytes);
    memcpy(from.data(), mine.data(), bytes);
    what.expect(group.rank, group.size, expected.data());
    sync(set, turn);
    subject = row.info.name;
    row.call(dest.data(), from.data(), what.dst, what.sst, what.nelems_of(group.rank), what.root, set.start,
             set.log_stride, group.size, psyncs[1]);
    check_reached(row.info.name);
    CHECK_BYTES("dest", dest.data(), expected.data(), dest.bytes());
    dest.check_guards("beside dest");
    CHECK_BYTES("source behind it", from.data(), mine.data(), bytes);
}

void reduce(const old_reduce_row& row, const ActiveSet& set, uint64_t turn, Random& random) {
    const Group& group = set.group;
    const function_info& info = row.info;
    const size_t nelems = random_reduce_count(info.bytes, dest.capacity() / 2, random, random.below(16) == 0);
    const uint64_t stream = random.next();
    dest.take(random.below(16) * info.bytes, nelems * info.bytes);
    source.take(random.below(16) * info.bytes, nelems * info.bytes);
    const bool in_place = random.below(3) == 0;
    const Buffer from = in_place ? dest : source;
    std::vector<unsigned char> expected(nelems * info.bytes + 1);
    fill_values(info, stream, group.rank, group.size, nelems, from.data());
    expect_reduction(info, row.op, stream, group.rank, group.size, nelems, expected.data());
    // As many as the specification asks for.
    work.take(0, std::max<size_t>(nelems / 2 + 1, SHMEM_REDUCE_MIN_WRKDATA_SIZE) * info.bytes);
    sync(set, turn);
    subject = info.name;
    row.call(dest.data(), from.data(), static_cast<int>(nelems), set.start, set.log_stride, group.size, work.data(),
             psyncs[1]);
    check_reached(info.name);
    CHECK_VALUES(info, "dest", dest.data(), expected.data(), nelems);
    dest.check_guards("beside dest");
    work.check_guards("beside pWrk");
}

std::vector<ActiveSet> make_sets() {
    std::vector<ActiveSet> sets;
    for (int log_stride = 0; 1 << log_stride < std::max(2, n_pes); ++log_stride) {
        for (int start : {0, 1, n_pes - 1}) {
            const int most = (n_pes - start + (1 << log_stride) - 1) >> log_stride;
            for (int size : {most, most - 1, 1}) {
                if (start >= n_pes || size < 1)
                    continue;
                const int stride = 1 << log_stride, rank = (pe - start) / stride;
                const bool member = pe >= start && rank * stride == pe - start && rank < size;
                sets.push_back({start, log_stride, {SHMEM_TEAM_INVALID, start, stride, size, member ? rank : -1}});
            }
        }
    }
    return sets;
}

// barrier completes what was put; sync only waits.
void synchronize(const ActiveSet& set, uint64_t number) {
    static uint64_t arrival;
    const Group& group = set.group;
    const int next = group.start + (group.rank + 1) % group.size * group.stride;
    for (uint64_t round = 0; round < 20; ++round) {
        const uint64_t stamp = number * 1000 + round + 1;
        sync(set, round);  // all have looked
        shmem_uint64_p(&arrival, stamp, next);
        subject = "shmem_barrier";
        shmem_barrier(set.start, set.log_stride, group.size, psyncs[1]);
        CHECK_EQ(shmem_uint64_atomic_fetch(&arrival, pe), stamp);
        sync(set, round + 1);
    }
}

}  // namespace

int main() {
    start("active_sets");
    for (auto& psync : psyncs)
        for (long& value : psync) value = SHMEM_SYNC_VALUE;
    CHECK(SHMEM_SYNC_SIZE <= kSyncs && SHMEM_REDUCE_SYNC_SIZE <= kSyncs && SHMEM_BCAST_SYNC_SIZE <= kSyncs);
    for (Buffer* buffer : {&dest, &source, &work})
        *buffer = Buffer(static_cast<unsigned char*>(shmem_align(64, kCapacity)), kCapacity);
    static_sources = Buffer(static_source, kCapacity);
    const std::vector<ActiveSet> sets = make_sets();
    for (size_t s = 0; s < sets.size(); ++s) {
        if (!sets[s].group.member())
            continue;
        synchronize(sets[s], s);
        Random random = random_for(s, 9);
        for (size_t i = 0; i < old_move_rows_count; ++i)
            for (uint64_t turn = 0; turn < 4; ++turn) move(old_move_rows[i], sets[s], turn, random);
        for (size_t i = 0; i < old_reduce_rows_count; ++i) reduce(old_reduce_rows[i], sets[s], i, random);
        check_psyncs();
    }
    shmem_barrier_all();
    return finish();
}
