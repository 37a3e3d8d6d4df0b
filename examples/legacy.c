/* A program of the old days: start_pes, the names without prefix, collectives on active sets with pSync and pWrk.
 * Compiled with HEDDLE_SILENCE_DEPRECATED, it must build without a warning and still be right. */
#include <mpp/shmem.h>

#include "example.h"

enum { kElements = 40, kMostPes = 64 };

static long sync_a[_SHMEM_REDUCE_SYNC_SIZE], sync_b[SHMEM_COLLECT_SYNC_SIZE], sync_c[SHMEM_BCAST_SYNC_SIZE],
    sync_d[SHMEM_BARRIER_SYNC_SIZE];
static double work[kElements / 2 + 1 + _SHMEM_REDUCE_MIN_WRKDATA_SIZE];
static double values[kElements], sums[kElements];
static int counter, collected[kMostPes];
static long words[kElements], received[kElements * kMostPes];

int main(void) {
    start_pes(0);
    const int me = _my_pe(), n = _num_pes();
    REQUIRE(n <= kMostPes, "its arrays are made for %d PEs", kMostPes);
    for (int i = 0; i < _SHMEM_REDUCE_SYNC_SIZE; ++i) sync_a[i] = _SHMEM_SYNC_VALUE;
    for (int i = 0; i < SHMEM_COLLECT_SYNC_SIZE; ++i) sync_b[i] = SHMEM_SYNC_VALUE;
    for (int i = 0; i < SHMEM_BCAST_SYNC_SIZE; ++i) sync_c[i] = SHMEM_SYNC_VALUE;
    for (int i = 0; i < SHMEM_BARRIER_SYNC_SIZE; ++i) sync_d[i] = SHMEM_SYNC_VALUE;
    shmem_barrier_all();

    for (int i = 0; i < kElements; ++i) values[i] = i + 0.5 * me;
    shmem_double_sum_to_all(sums, values, kElements, 0, 0, n, work, sync_a);
    for (int i = 0; i < kElements; ++i)
        REQUIRE(sums[i] == n * (double)i + 0.25 * n * (n - 1), "sum %d is %g", i, sums[i]);

    for (int i = 0; i < kElements; ++i) words[i] = 100 * me + i;
    received[0] = -1;
    shmem_barrier_all(); /* received is ready on all */
    shmem_broadcast64(received, words, kElements, n - 1, 0, 0, n, sync_c);
    REQUIRE(received[0] == (me == n - 1 ? -1 : 100L * (n - 1)), "the broadcast gave %ld", received[0]);
    shmem_barrier(0, 0, n, sync_d);
    if (me % 2 == 0) { /* every second PE: a stride of 2 to the power of 1 */
        shmem_fcollect64(received, words, kElements, 0, 1, (n + 1) / 2, sync_b);
        for (int pe = 0; pe < n; pe += 2)
            REQUIRE(received[pe / 2 * kElements + 1] == 100 * pe + 1, "fcollect of PE %d", pe);
    }
    shmem_barrier_all();

    const int mine = shmem_int_fadd(&counter, 1, 0);
    REQUIRE(mine >= 0 && mine < n, "fadd gave %d", mine);
    shmem_barrier_all();
    shmem_int_inc(&counter, 0);
    shmem_barrier_all();
    REQUIRE(shmem_int_g(&counter, 0) == 2 * n, "counted to %d", shmem_int_g(&counter, 0));
    shmem_barrier_all();
    REQUIRE(shmem_int_cswap(&counter, -1, 5, 0) == 2 * n, "cswap took what it should not");
    shmem_barrier_all();
    REQUIRE(shmem_int_cswap(&counter, me, 7, me) == (me == 0 ? 2 * n : 0), "cswap found another value");
    counter = 100 + me;
    shmem_collect32(collected, &counter, me % 2, 0, 0, n, sync_b); /* odd PEs alone give something */
    for (int i = 0; i < n / 2; ++i) REQUIRE(collected[i] == 101 + 2 * i, "collect gave %d", collected[i]);

    long* flag = shmalloc(sizeof *flag);
    *flag = 0;
    shmem_barrier_all();
    shmem_long_p(flag, me + 1, (me + 1) % n);
    shmem_wait(flag, 0);
    REQUIRE(*flag == (me + n - 1) % n + 1, "the flag is %ld", *flag);
    shfree(flag);
    return example_pass("legacy");
}
