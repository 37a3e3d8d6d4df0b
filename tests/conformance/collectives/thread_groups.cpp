// Collectives by all threads of a PE against those of one thread, bit by bit: sums and products whose value depends on
// the order, at sizes around the borders of the algorithms and far beyond, on the world, a strided team and one PE. And
// what a thread group has returned from may be used again at once.
#include "check.h"
#include "collectives.h"

#include <vector>

using namespace conformance;

namespace {

constexpr size_t kMostBytes = 1 << 20;
constexpr size_t kSizes[] = {0, 8, 232, 240, 248, 2048, 16376, 16384, 16392, 100008, kMostBytes};

struct Collective {
    const char* name;
    bool spreads;  // dest has a block for each member
    int (*by_thread_group)(const thread_group_call* call, int thread, int nthreads);
    int (*by_one)(const thread_group_call& call);
};
double* dest_of(const thread_group_call& call) {
    return static_cast<double*>(call.dest);
}
const double* source_of(const thread_group_call& call) {
    return static_cast<const double*>(call.source);
}
#define GROUP_REDUCE(op)                                                                                           \
    {"shmemx_double_" #op "_reduce_mt", false,                                                                     \
     [](const thread_group_call* call, int thread, int nthreads) {                                                 \
         return shmemx_double_##op##_reduce_mt(call->team, dest_of(*call), source_of(*call), call->nelems, thread, \
                                               nthreads);                                                          \
     },                                                                                                            \
     [](const thread_group_call& call) {                                                                           \
         return shmem_double_##op##_reduce(call.team, dest_of(call), source_of(call), call.nelems);                \
     }}
#define GROUP_SCAN(op)                                                                                          \
    {"shmemx_double_sum_" #op "_mt", false,                                                                     \
     [](const thread_group_call* call, int thread, int nthreads) {                                              \
         return shmemx_double_sum_##op##_mt(call->team, dest_of(*call), source_of(*call), call->nelems, thread, \
                                            nthreads);                                                          \
     },                                                                                                         \
     [](const thread_group_call& call) {                                                                        \
         return shmem_double_sum_##op(call.team, dest_of(call), source_of(call), call.nelems);                  \
     }}
#define GROUP_SPREAD(op)                                                                                               \
    {"shmemx_double_" #op "_mt", true,                                                                                 \
     [](const thread_group_call* call, int thread, int nthreads) {                                                     \
         return shmemx_double_##op##_mt(call->team, dest_of(*call), source_of(*call), call->nelems, thread, nthreads); \
     },                                                                                                                \
     [](const thread_group_call& call) {                                                                               \
         return shmem_double_##op(call.team, dest_of(call), source_of(call), call.nelems);                             \
     }}
const Collective kCollectives[] = {
    GROUP_REDUCE(sum),
    GROUP_REDUCE(prod),
    GROUP_REDUCE(max),
    GROUP_SCAN(inscan),
    GROUP_SCAN(exscan),
    GROUP_SPREAD(collect),
    GROUP_SPREAD(fcollect),
    GROUP_SPREAD(alltoall),
    {"shmemx_double_alltoalls_mt", true,
     [](const thread_group_call* call, int thread, int nthreads) {
         return shmemx_double_alltoalls_mt(call->team, dest_of(*call), source_of(*call), call->dst, call->sst,
                                           call->nelems, thread, nthreads);
     },
     [](const thread_group_call& call) {
         return shmem_double_alltoalls(call.team, dest_of(call), source_of(call), call.dst, call.sst, call.nelems);
     }},
    {"shmemx_double_broadcast_mt", false,
     [](const thread_group_call* call, int thread, int nthreads) {
         return shmemx_double_broadcast_mt(call->team, dest_of(*call), source_of(*call), call->nelems, call->root,
                                           thread, nthreads);
     },
     [](const thread_group_call& call) {
         return shmem_double_broadcast(call.team, dest_of(call), source_of(call), call.nelems, call.root);
     }},
};

double *dest, *right, *source;

// Numbers of very different size, so that another order rounds differently.
void fill(Random& random, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        const double mantissa = 1 + static_cast<double>(random.next() >> 12) * 0x1p-52;
        source[i] = (random.below(2) ? mantissa : -mantissa) * static_cast<double>(uint64_t{1} << random.below(60));
    }
}

void compare(const Collective& collective, const Group& group, size_t bytes, uint64_t number) {
    subject = collective.name;
    const size_t blocks = collective.spreads ? static_cast<size_t>(group.size) : 1;
    const size_t nelems = bytes / sizeof(double) / blocks, results = nelems * blocks;
    Random random = random_for(number, static_cast<uint64_t>(pe));
    fill(random, results);
    const std::vector<double> before(source, source + results);
    memset(dest, 0x5a, (results + 8) * sizeof(double)), memset(right, 0x5a, (results + 8) * sizeof(double));
    const thread_group_call alone = {group.team, right, source, nelems, static_cast<int>(number) % group.size, 1, 1};
    thread_group_call call = alone;
    call.dest = dest;
    CHECK_EQ(shmem_team_sync(group.team), 0);  // dest and right are ready everywhere
    CHECK_EQ(collective.by_one(alone), 0);
    CHECK_EQ(conformance_thread_group(collective.by_thread_group, &call), 0);
    CHECK_BYTES("the result of a thread group", dest, right, (results + 8) * sizeof(double));
    CHECK_BYTES("source", source, before.data(), results * sizeof(double));
    if (!collective.spreads && number % 2) {  // in place, where that is allowed
        call.dest = source;
        CHECK_EQ(shmem_team_sync(group.team), 0);
        CHECK_EQ(conformance_thread_group(collective.by_thread_group, &call), 0);
        CHECK_BYTES("the result of a thread group, in place", source, right, results * sizeof(double));
    }
}

// The next one follows at once, into the same dest, from a source that has been overwritten.
void in_a_row(const Collective& collective, const Group& group, size_t bytes) {
    subject = collective.name;
    const size_t blocks = collective.spreads ? static_cast<size_t>(group.size) : 1;
    const size_t nelems = bytes / sizeof(double) / blocks, mine = collective.spreads ? nelems * blocks : nelems;
    const auto me = static_cast<double>(group.rank);
    CHECK_EQ(shmem_team_sync(group.team), 0);  // all are done with dest and right
    for (int round = 0; round < 20; ++round) {
        double* const to = round % 2 ? dest : right;
        for (size_t i = 0; i < mine; ++i) source[i] = me * 1000 + round;
        const thread_group_call call = {group.team, to, source, nelems, round % group.size, 1, 1};
        CHECK_EQ(conformance_thread_group(collective.by_thread_group, &call), 0);
        for (size_t block = 0; block < blocks && nelems > 0 && collective.spreads; ++block) {
            CHECK_EQ(to[block * nelems], static_cast<double>(block) * 1000 + round);
            CHECK_EQ(to[(block + 1) * nelems - 1], static_cast<double>(block) * 1000 + round);
        }
    }
    CHECK_EQ(shmem_team_sync(group.team), 0);
}

}  // namespace

int main() {
    start("thread_groups");
    for (double** buffer : {&dest, &right, &source}) {
        *buffer = static_cast<double*>(shmem_align(64, kMostBytes + 64));
        CHECK(*buffer);
    }
    std::vector<Group> groups = make_groups();
    uint64_t number = 0;
    for (const Group& group : groups) {
        for (const Collective& collective : kCollectives) {
            for (size_t bytes : kSizes) {
                ++number;
                if (group.member())
                    compare(collective, group, bytes, number);
            }
            if (group.member())
                in_a_row(collective, group, number % 2 ? 16384 : 200);
        }
    }
    destroy_groups(groups);
    return finish();
}
