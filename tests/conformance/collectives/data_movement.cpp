// The collectives that move data, every function, on teams of all kinds: every root, even and uneven counts, none at
// all, strides, addresses of every alignment for the mem forms, heap and static data, in place where that is allowed.
// What dest becomes is compared with a serial model; around dest nothing changes, and source stays what it was.
#include "collectives.h"
#include "completion.h"

#include <cstdlib>

using namespace conformance;

namespace {

constexpr size_t kCapacity = 1 << 20;
unsigned char static_dest[kCapacity] __attribute__((aligned(64)));
unsigned char static_source[kCapacity] __attribute__((aligned(64)));
Buffer dests[2], sources[2];  // heap, static data

void one_operation(const move_row& row, const Group& group, const Move& move, Random& random) {
    const size_t unit = row.info.kind == 'b' ? 1 : row.info.bytes;
    Buffer dest = dests[random.below(2)], source = sources[random.below(2)];
    dest.take(random.below(16) * unit, move.dest_bytes(group.size));
    const bool in_place = row.op == MOVE_BROADCAST && random.below(4) == 0;
    std::vector<unsigned char> expected(dest.bytes() + 8, Buffer::kFresh);
    const size_t source_bytes = move.source_bytes(group.rank, group.size);
    std::vector<unsigned char> mine(source_bytes + 8);
    move.fill_source(group.rank, group.size, mine.data());
    if (in_place) {
        memcpy(dest.data(), mine.data(), source_bytes);
        source = dest;
    } else {
        source.take(random.below(16) * unit, source_bytes);
        memcpy(source.data(), mine.data(), source_bytes);
    }
    move.expect(group.rank, group.size, expected.data());
    CHECK_EQ(shmem_team_sync(group.team), 0);  // dest is ready everywhere
    subject = row.info.name;
    CHECK_EQ(
        row.call(group.team, dest.data(), source.data(), move.dst, move.sst, move.nelems_of(group.rank), move.root), 0);
    check_reached(row.info.name);
    complete_collective(row.info);
    CHECK_BYTES("dest", dest.data(), expected.data(), dest.bytes());
    dest.check_guards("beside dest");
    if (!in_place) {
        CHECK_BYTES("source behind it", source.data(), mine.data(), source_bytes);
        source.check_guards("beside source");
    }
}

// Each group has its own stream, so that members agree whatever else they are in.
void all_operations(const std::vector<Group>& groups, const move_row& row, size_t index, uint64_t rounds) {
    for (size_t g = 0; g < groups.size(); ++g) {
        const Group& group = groups[g];
        if (!group.member())
            continue;
        // A team of one is another one on each PE; all others share their numbers.
        const auto first = static_cast<uint64_t>(group.start);
        Random random = random_for(index, g * 1000 + first, 3);
        const uint64_t times = g == 0 ? 4 * rounds : rounds;
        for (uint64_t i = 0; i < times; ++i) {
            const bool large = random.below(16) == 0;
            one_operation(row, group, random_move(row.op, row.info.bytes, group.size, kCapacity / 2, random, large),
                          random);
        }
    }
}

void every_root(const std::vector<Group>& groups, const move_row& row, size_t index) {
    for (size_t g = 0; g < groups.size(); ++g) {
        if (!groups[g].member())
            continue;
        Random random = random_for(index, g * 1000 + static_cast<uint64_t>(groups[g].start), 4);
        for (int root = 0; root < groups[g].size; ++root) {
            Move move = random_move(row.op, row.info.bytes, groups[g].size, kCapacity / 2, random, false);
            move.root = root;
            one_operation(row, groups[g], move, random);
        }
    }
}

// No row for all is needed: a sync that lets a member through early is seen by the counter.
void syncs(const std::vector<Group>& groups) {
    static uint64_t counters[16];
    CHECK(groups.size() <= std::size(counters));
    for (size_t i = 0; i < sync_rows_count; ++i) {
        subject = sync_rows[i].info.name;
        for (uint64_t round = 1; round <= 50; ++round) {
            for (size_t g = 0; g < groups.size(); ++g) {
                const Group& group = groups[g];
                if (!group.member())
                    continue;
                const int next = group.start + (group.rank + 1) % group.size * group.stride;
                shmem_uint64_atomic_inc(&counters[g], next);
                shmem_quiet();  // a sync completes nothing
                CHECK_EQ(sync_rows[i].call(group.team), 0);
                check_reached(sync_rows[i].info.name);
                complete_collective(sync_rows[i].info);
                const uint64_t seen = shmem_uint64_atomic_fetch(&counters[g], pe);
                const uint64_t right = i * 50 + round;
                CHECK(seen == right || seen == right + 1);  // the member before me may be in the next round
            }
        }
    }
    shmem_barrier_all();
}

}  // namespace

int main() {
    start("data_movement");
    for (Buffer* buffers : {dests, sources}) {
        buffers[0] = Buffer(static_cast<unsigned char*>(shmem_align(64, kCapacity)), kCapacity);
        buffers[1] = Buffer(buffers == dests ? static_dest : static_source, kCapacity);
    }
    const uint64_t rounds = number("HEDDLE_TEST_ROUNDS", 1);
    std::vector<Group> groups = make_groups();
    syncs(groups);
    for (size_t i = 0; i < move_rows_count; ++i) {
        if (!is_drawn(i))
            continue;
        all_operations(groups, move_rows[i], i, rounds);
        if (move_rows[i].op == MOVE_BROADCAST && i % 5 == 0)
            every_root(groups, move_rows[i], i);
    }
    destroy_groups(groups);
    return finish();
}
