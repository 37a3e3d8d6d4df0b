/* MPI and OpenSHMEM in one program, initialized and finalized in the order that the argument says: two letters, m or s,
 * of who comes first in each. Both move data; numbers are mapped; atomics and barriers of one do not disturb the other.
 */
#include <mpi.h>
#include <shmem.h>
#include <stdio.h>

#define CHECK(condition)                                                 \
    do {                                                                 \
        if (!(condition)) {                                              \
            printf("line %d: %s does not hold\n", __LINE__, #condition); \
            fflush(stdout);                                              \
            MPI_Abort(MPI_COMM_WORLD, 9);                                \
        }                                                                \
    } while (0)

enum { kMost = 64 };
static int ranks[kMost]; /* by PE */
static long cell;

int main(int argc, char** argv) {
    const char* order = argc > 1 ? argv[1] : "ms";
    int provided = -1, rank, size, sum = 0;
    if (order[0] == 's')
        shmem_init();
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    if (order[0] == 'm')
        CHECK(shmem_init_thread(SHMEM_THREAD_FUNNELED, &provided) == 0);
    shmem_query_thread(&provided);
    CHECK(provided >= SHMEM_THREAD_FUNNELED);
    const int me = shmem_my_pe(), n = shmem_n_pes();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(n == size && n <= kMost);
    for (int pe = 0; pe < n; ++pe) shmem_int_p(&ranks[me], rank, pe);
    shmem_barrier_all();
    /* A communicator in the order of the PEs: rank and number are one there. */
    MPI_Comm by_pe;
    MPI_Comm_split(MPI_COMM_WORLD, 0, me, &by_pe);
    MPI_Comm_rank(by_pe, &rank);
    CHECK(rank == me);
    for (int round = 0; round < 50; ++round) {
        const int next = (me + 1) % n, previous = (me + n - 1) % n;
        int got = -1;
        shmem_long_atomic_add(&cell, 1, next);
        MPI_Sendrecv(&round, 1, MPI_INT, next, 0, &got, 1, MPI_INT, previous, 0, by_pe, MPI_STATUS_IGNORE);
        CHECK(got == round);
        shmem_barrier_all();
        CHECK(shmem_long_g(&cell, me) == round + 1);
        MPI_Barrier(by_pe);
    }
    MPI_Allreduce(&ranks[me], &sum, 1, MPI_INT, MPI_SUM, by_pe);
    CHECK(sum == n * (n - 1) / 2);
    MPI_Comm_free(&by_pe);
    if (order[1] == 's')
        shmem_finalize();
    MPI_Finalize();
    if (order[1] == 'm')
        shmem_finalize();
    printf("PE %d of %d\n", me, n);
    return 0;
}
