/* Parallel prefix sums by hand (W. Hillis, G. Steele, "Data parallel algorithms", 1986): in round r each PE adds what
 * the PE 2^r before it had; then the library's sum_inscan and sum_exscan. All three must agree. Argument: elements. */
#include <string.h>
#include "example.h"

int main(int argc, char** argv) {
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes();
    const size_t nelems = example_size(argc, argv, 1, 97), bytes = nelems * sizeof(long);
    long* source = shmem_malloc(bytes);
    long* sum = shmem_malloc(bytes);
    long* from_before = shmem_malloc(bytes);
    long* scanned = shmem_malloc(bytes);
    for (size_t i = 0; i < nelems; ++i) source[i] = (long)(i * i) - 50 * me;
    memcpy(sum, source, bytes);
    for (int distance = 1; distance < n; distance *= 2) {
        shmem_barrier_all(); /* everybody has used what came last */
        if (me + distance < n)
            shmem_long_put(from_before, sum, nelems, me + distance);
        shmem_barrier_all();
        for (size_t i = 0; me >= distance && i < nelems; ++i) sum[i] += from_before[i];
    }
    shmem_sum_inscan(SHMEM_TEAM_WORLD, scanned, source, nelems);
    for (size_t i = 0; i < nelems; ++i)
        REQUIRE(scanned[i] == sum[i], "inscan[%zu] is %ld, by hand %ld", i, scanned[i], sum[i]);
    shmem_team_sync(SHMEM_TEAM_WORLD); /* dest is ready again on all */
    shmem_sum_exscan(SHMEM_TEAM_WORLD, scanned, source, nelems);
    for (size_t i = 0; i < nelems; ++i)
        REQUIRE(scanned[i] == sum[i] - source[i], "exscan[%zu] is %ld, right is %ld", i, scanned[i],
                sum[i] - source[i]);
    shmem_team_sync(SHMEM_TEAM_WORLD);
    shmem_sum_inscan(SHMEM_TEAM_WORLD, source, source, nelems);
    for (size_t i = 0; i < nelems; ++i) REQUIRE(source[i] == sum[i], "in place, element %zu differs", i);
    return example_pass("prefix");
}
