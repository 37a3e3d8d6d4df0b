/* Integer sort by buckets: PE i receives the keys of the i-th part of their range. An alltoall tells how many come from
 * whom, an exclusive scan where each PE writes in its targets, and puts move the keys. Checked: order within and across
 * PEs, number and sum of keys. Argument: keys a PE. */
#include <stdbool.h>
#include "example.h"

enum { kRange = 1 << 20 };

static int compare(const void* a, const void* b) {
    const long x = *(const long*)a, y = *(const long*)b;
    return (x > y) - (x < y);
}

int main(int argc, char** argv) {
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes();
    const size_t keys = example_size(argc, argv, 1, 3001), pes = (size_t)n;
    long* mine = malloc(keys * sizeof(long));
    unsigned long state = 12345u + (unsigned long)me * 977u;
    long my_sum = 0;
    for (size_t i = 0; i < keys; ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        mine[i] = (long)(state >> 33) % kRange;
        my_sum += mine[i];
    }
    qsort(mine, keys, sizeof(long), compare); /* the keys for one PE lie together */

    long* counts = shmem_calloc(pes, sizeof(long)); /* for each PE */
    long* places = shmem_calloc(pes, sizeof(long)); /* where my keys begin on each PE: those of lower PEs come first */
    long* totals = shmem_calloc(pes, sizeof(long));
    for (size_t i = 0; i < keys; ++i) ++counts[mine[i] * n / kRange];
    shmem_sum_exscan(SHMEM_TEAM_WORLD, places, counts, pes);
    shmem_sum_reduce(SHMEM_TEAM_WORLD, totals, counts, pes);
    long most = 0;
    for (size_t pe = 0; pe < pes; ++pe) most = totals[pe] > most ? totals[pe] : most;
    long* sorted = shmem_malloc(((size_t)most + 1) * sizeof(long));
    size_t at = 0;
    for (int pe = 0; pe < n; ++pe) {
        shmem_put(sorted + places[pe], mine + at, (size_t)counts[pe], pe);
        at += (size_t)counts[pe];
    }
    shmem_barrier_all();
    const size_t received = (size_t)totals[me];
    qsort(sorted, received, sizeof(long), compare);

    /* The same counts by alltoall: what I was told and what was sent agree. */
    long* from = shmem_calloc(pes, sizeof(long));
    shmem_alltoall(SHMEM_TEAM_WORLD, from, counts, 1);
    long told = 0;
    for (size_t pe = 0; pe < pes; ++pe) told += from[pe];
    REQUIRE(told == (long)received, "%ld keys announced, %zu received", told, received);
    for (size_t i = 0; i < received; ++i) {
        REQUIRE(sorted[i] * n / kRange == me, "key %ld is on the wrong PE", sorted[i]);
        REQUIRE(i == 0 || sorted[i - 1] <= sorted[i], "keys %zu and %zu are out of order", i - 1, i);
    }
    long* sums = shmem_calloc(6, sizeof(long));
    sums[0] = my_sum;
    for (size_t i = 0; i < received; ++i) sums[1] += sorted[i];
    sums[2] = (long)received;
    shmem_sum_reduce(SHMEM_TEAM_WORLD, sums + 3, sums, 3);
    REQUIRE(sums[3] == sums[4], "the keys summed to %ld before and %ld after", sums[3], sums[4]);
    REQUIRE(sums[5] == (long)(keys * pes), "%ld keys are left of %zu", sums[5], keys * pes);
    return example_pass("isort");
}
