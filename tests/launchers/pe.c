/* pe WAY: a PE of a real launcher. How the last PE ends: well; kill, by SIGKILL; exit, by _exit(7); global, by
 * shmem_global_exit(5). stay: all wait for ever. deaf: so, and they ignore SIGINT. child: each PE starts this program.
 * stop: each stops itself before it ends. race: several PEs put to one place, and the last one goes on for a while when
 * all have finalized.
 * hello: only PE 0 adds to the sums, which for hundreds of PEs would otherwise take most of the time. */
#include <shmem.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long sum, raced;

int main(int argc, char** argv) {
    const char* way = argc > 1 ? argv[1] : "well";
    if (strcmp(way, "deaf") == 0)
        signal(SIGINT, SIG_IGN);
    shmem_init();
    const int me = shmem_my_pe(), pes = shmem_n_pes();
    if (strcmp(way, "hello") != 0)
        for (int pe = 0; pe < pes; ++pe) shmem_long_atomic_add(&sum, me + 1, pe);
    else if (me == 0)
        for (int pe = 0; pe < pes; ++pe) shmem_long_atomic_add(&sum, pes * (pes + 1L) / 2, pe);
    shmem_barrier_all();
    int near = 0;
    for (int pe = 0; pe < pes; ++pe) near += shmem_ptr(&sum, pe) != NULL;
    if (shmem_team_n_pes(SHMEM_TEAM_SHARED) != near)
        printf("SHMEM_TEAM_SHARED has %d PEs\n", shmem_team_n_pes(SHMEM_TEAM_SHARED));
    printf("PE %d of %d: %ld, %d near, process %d\n", me, pes, sum, near, (int)getpid());
    fflush(stdout);
    shmem_barrier_all();
    if (me == pes - 1 && strcmp(way, "kill") == 0)
        raise(SIGKILL);
    if (me == pes - 1 && strcmp(way, "exit") == 0)
        _exit(7);
    if (me == pes - 1 && strcmp(way, "global") == 0)
        shmem_global_exit(5);
    if (strcmp(way, "race") == 0)
        shmem_long_p(&raced, me, 0);
    if (strstr("well child hello stop race", way) == NULL)
        shmem_long_wait_until(&sum, SHMEM_CMP_LT, 0);
    if (strcmp(way, "stop") == 0)
        raise(SIGSTOP);
    const int status = strcmp(way, "child") == 0 ? system(argv[0]) : 0;
    shmem_finalize();
    if (strcmp(way, "race") == 0) {
        usleep(me == pes - 1 ? 2000000 : 0);
        printf("PE %d is at its end\n", me);
    }
    return status != 0;
}
