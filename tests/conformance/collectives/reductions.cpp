// Reductions and prefix sums, every function, on teams of all kinds: the bits of dest are those of combining the
// members' values one after the other in the order of their numbers (short floating-point ones of many members: as a
// tree over the numbers, docs/decisions/0032), on every member, at sizes that reach every algorithm, none at all, odd
// ones, in place and not, with the boundaries of each type. Around dest nothing changes, and source stays what it was.
// PE 0 prints a checksum of all results, which no setting may change (test_results.py).
#include "collectives.h"
#include "completion.h"

#include <cstdio>
#include <cstdlib>

using namespace conformance;

namespace {

constexpr size_t kCapacity = 1 << 19;
unsigned char static_dest[kCapacity] __attribute__((aligned(64)));
unsigned char static_source[kCapacity] __attribute__((aligned(64)));
Buffer dests[2], sources[2];  // heap, static data
uint64_t all_results, results;

void add_to_checksum(const function_info& info, const unsigned char* data, size_t nelems) {
    if (info.kind == 'c')
        return;  // the sign of their NaNs is open
    for (size_t i = 0; i < nelems; ++i)
        for (size_t k = 0; k < value_bytes(info); ++k)
            results = results * 0x9e3779b97f4a7c15u + data[i * info.bytes + k] + 1;
}

void one_operation(const reduce_row& row, const Group& group, size_t nelems, Random& random) {
    const function_info& info = row.info;
    const size_t bytes = nelems * info.bytes;
    const uint64_t stream = random.next();
    Buffer dest = dests[random.below(2)], source = sources[random.below(2)];
    const bool in_place = random.below(3) == 0;
    const size_t offset = random.below(16), source_offset = random.below(16);
    dest.take(offset * info.bytes, bytes);
    source.take(source_offset * info.bytes, bytes);
    if (in_place)
        source = dest;
    std::vector<unsigned char> expected(bytes + 1), mine(bytes + 1);
    fill_values(info, stream, group.rank, group.size, nelems, mine.data());
    memcpy(source.data(), mine.data(), bytes);
    expect_reduction(info, row.op, stream, group.rank, group.size, nelems, expected.data());
    CHECK_EQ(shmem_team_sync(group.team), 0);  // dest is ready everywhere
    subject = info.name;
    CHECK_EQ(row.call(group.team, dest.data(), source.data(), nelems), 0);
    check_reached(info.name);
    complete_collective(info);
    CHECK_VALUES(info, in_place ? "dest, in place" : "dest", dest.data(), expected.data(), nelems);
    dest.check_guards("beside dest");
    if (!in_place) {
        CHECK_BYTES("source behind it", source.data(), mine.data(), bytes);
        source.check_guards("beside source");
    }
    if (group.team != SHMEM_TEAM_SHARED)  // whose members are others on other nodes
        add_to_checksum(info, dest.data(), nelems);
}

void all_operations(const std::vector<Group>& groups, const reduce_row& row, size_t index, uint64_t rounds) {
    for (size_t g = 0; g < groups.size(); ++g) {
        const Group& group = groups[g];
        if (!group.member())
            continue;
        Random random = random_for(index, g * 1000 + static_cast<uint64_t>(group.start), 8);
        const uint64_t times = g == 0 ? 4 * rounds : g % 3 == index % 3 ? rounds : 0;
        for (uint64_t i = 0; i < times; ++i) {
            const bool large = random.below(24) == 0;
            const size_t most = dests[0].capacity() / (group.size > 8 ? 8 : 1);
            one_operation(row, group, random_reduce_count(row.info.bytes, most, random, large), random);
        }
    }
}

}  // namespace

int main() {
    start("reductions");
    for (Buffer* buffers : {dests, sources}) {
        buffers[0] = Buffer(static_cast<unsigned char*>(shmem_align(64, kCapacity)), kCapacity);
        buffers[1] = Buffer(buffers == dests ? static_dest : static_source, kCapacity);
    }
    const uint64_t rounds = number("HEDDLE_TEST_ROUNDS", 1);
    std::vector<Group> groups = make_groups();
    for (size_t i = 0; i < reduce_rows_count; ++i)
        if (is_drawn(i))
            all_operations(groups, reduce_rows[i], i, rounds);
    destroy_groups(groups);
    shmem_uint64_atomic_add(&all_results, results, 0);
    shmem_barrier_all();
    if (pe == 0)
        printf("checksum of the results: %016llx\n", static_cast<unsigned long long>(all_results));
    return finish();
}
