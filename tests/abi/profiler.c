/* A profiler: a program that replaces shmem_ functions and passes them on to their pshmem_ twins. It is compiled with
 * -DHEDDLE_NO_INLINE, so that its calls are calls. */
#include <pshmem.h>
#include <stdio.h>

static int puts_counted, barriers_counted;

void shmem_long_p(long* dest, long value, int pe) {
    ++puts_counted;
    pshmem_long_p(dest, value, pe);
}

void shmem_barrier_all(void) {
    ++barriers_counted;
    pshmem_barrier_all();
}

int main(void) {
    long* cell;
    shmem_init();
    cell = (long*)shmem_malloc(sizeof(long));
    for (long i = 1; i <= 5; ++i) shmem_long_p(cell, i, shmem_my_pe());
    pshmem_long_p(cell, 6, shmem_my_pe());
    shmem_barrier_all();
    if (puts_counted != 5 || barriers_counted != 1 || *cell != 6) {
        fprintf(stderr, "counted %d puts (right: 5), %d barriers (right: 1), cell %ld (right: 6)\n", puts_counted,
                barriers_counted, *cell);
        return 1;
    }
    shmem_free(cell);
    shmem_finalize();
    return 0;
}
