/* Moves data in every way between all pairs of PEs, checks each answer, and says who shares a node with how many. */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                       \
    do {                                                                                       \
        if (!(condition)) {                                                                    \
            printf("PE %d: line %d: %s does not hold\n", shmem_my_pe(), __LINE__, #condition); \
            fflush(stdout);                                                                    \
            shmem_global_exit(9);                                                              \
        }                                                                                      \
    } while (0)

enum { kMost = 64, kLarge = 300000 };
static long placed[kMost], counter, flag;

static char letter(int pe, int i) {
    return (char)(pe * 31 + i % 127);
}

static void puts_and_gets(int me, int n, long* heap) {
    for (int pe = 0; pe < n; ++pe) {
        shmem_long_p(&heap[me], 100 * me + pe, pe);
        shmem_long_p(&placed[me], 200 * me + pe, pe);
    }
    shmem_barrier_all();
    for (int pe = 0; pe < n; ++pe) {
        CHECK(heap[pe] == 100 * pe + me);
        CHECK(placed[pe] == 200 * pe + me);
        for (int from = 0; from < n; ++from) {
            CHECK(shmem_long_g(&heap[from], pe) == 100 * from + pe);
            CHECK(shmem_long_g(&placed[from], pe) == 200 * from + pe);
        }
    }
    shmem_barrier_all();
}

static void large(int me, int n, char* area) {
    char* mine = malloc(kLarge);
    for (int i = 0; i < kLarge; ++i) mine[i] = letter(me, i);
    shmem_putmem(area, mine, kLarge, (me + 1) % n);
    shmem_barrier_all();
    const int before = (me + n - 1) % n;
    for (int i = 0; i < kLarge; ++i) CHECK(area[i] == letter(before, i));
    shmem_getmem_nbi(mine, area, kLarge, (me + 1) % n);
    shmem_quiet();
    for (int i = 0; i < kLarge; ++i) CHECK(mine[i] == letter(me, i));
    free(mine);
    shmem_barrier_all();
}

static void atomics(int me, int n) {
    for (int pe = 0; pe < n; ++pe) CHECK(shmem_long_atomic_fetch_add(&counter, me + 1, pe) >= 0);
    shmem_barrier_all();
    CHECK(counter == (long)n * (n + 1) / 2);
    const int next = (me + 1) % n;
    CHECK(shmem_long_atomic_swap(&flag, me + 1, next) == 0);
    CHECK(shmem_long_atomic_compare_swap(&flag, me + 1, -1, next) == me + 1);
    shmem_barrier_all();
    CHECK(flag == -1);
}

static void collectives(int me, int n, long* heap) {
    shmem_barrier_all();
    heap[0] = me + 1;
    heap[1] = 0;
    CHECK(shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &heap[1], &heap[0], 1) == 0);
    CHECK(heap[1] == (long)n * (n + 1) / 2);
    CHECK(shmem_long_max_reduce(SHMEM_TEAM_WORLD, &heap[1], &heap[0], 1) == 0);
    CHECK(heap[1] == n);
    CHECK(shmem_long_broadcast(SHMEM_TEAM_WORLD, &heap[2], &heap[0], 1, n - 1) == 0);
    CHECK(heap[2] == n);
    CHECK(shmem_long_fcollect(SHMEM_TEAM_WORLD, &heap[8], &heap[0], 1) == 0);
    for (int pe = 0; pe < n; ++pe) CHECK(heap[8 + pe] == pe + 1);
    shmem_team_t shared = SHMEM_TEAM_SHARED;
    CHECK(shmem_long_sum_reduce(shared, &heap[3], &heap[4], 1) == 0);
    shmem_barrier_all();
}

static void reach(int me, int n, long* heap) {
    int near = 0;
    for (int pe = 0; pe < n; ++pe) {
        const int translated = shmem_team_translate_pe(SHMEM_TEAM_WORLD, pe, SHMEM_TEAM_SHARED);
        CHECK((shmem_ptr(heap, pe) != NULL) == (translated >= 0));
        near += translated >= 0;
    }
    CHECK(near == shmem_team_n_pes(SHMEM_TEAM_SHARED));
    printf("PE %d of %d: %d on its node\n", me, n, near);
}

int main(void) {
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes();
    long* heap = shmem_calloc(kMost, sizeof *heap);
    char* area = shmem_malloc(kLarge);
    puts_and_gets(me, n, heap);
    large(me, n, area);
    atomics(me, n);
    collectives(me, n, heap);
    reach(me, n, heap);
    shmem_finalize();
    return 0;
}
