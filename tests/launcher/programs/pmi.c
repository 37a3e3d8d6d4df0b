/* pmi WAY: a PE that a process manager has started. How it ends: well; stay: as a PE that waits for the others; global:
 * by shmem_global_exit; signal: well, when it has got SIGUSR1. */
#include <shmem.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static long sum;
static volatile sig_atomic_t signals;

static void count(int number) {
    (void)number;
    ++signals;
}

int main(int argc, char** argv) {
    const int waits = argc > 1 && strcmp(argv[1], "signal") == 0;
    signal(SIGUSR1, count);
    shmem_init();
    const int me = shmem_my_pe(), pes = shmem_n_pes();
    for (int pe = 0; pe < pes; ++pe) shmem_long_atomic_add(&sum, me + 1, pe);
    shmem_barrier_all();
    int near = 0;
    for (int pe = 0; pe < pes; ++pe) near += shmem_ptr(&sum, pe) != NULL;
    if (shmem_team_n_pes(SHMEM_TEAM_SHARED) != near)
        printf("SHMEM_TEAM_SHARED has %d PEs\n", shmem_team_n_pes(SHMEM_TEAM_SHARED));
    printf("PE %d of %d: %ld, %d near\n", me, pes, sum, near);
    fflush(stdout);
    if (argc > 1 && strcmp(argv[1], "global") == 0 && me == 0)
        shmem_global_exit(5);
    while (waits && signals == 0) usleep(1000);
    if (argc > 1 && strcmp(argv[1], "well") != 0 && !waits)
        shmem_long_wait_until(&sum, SHMEM_CMP_LT, 0);
    shmem_finalize();
    return 0;
}
