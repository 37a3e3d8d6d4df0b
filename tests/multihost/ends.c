/* Ends in the way that its first argument names, which PE 1 or the last PE begins; the others wait in a barrier. */
#include <shmem.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long word;
static volatile sig_atomic_t is_asked;

static void ask(int signal) {
    is_asked = signal;
}

int main(int argc, char** argv) {
    const char* way = argc > 1 ? argv[1] : "well";
    if (strcmp(way, "save") == 0)
        signal(SIGTERM, ask);
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes(), last = me == n - 1;
    const int status = argc > 2 ? atoi(argv[2]) : 0;
    printf("pid %d\n", getpid());
    shmem_barrier_all();
    if (strcmp(way, "global_exit") == 0 && last) {
        printf("the last words of PE %d\n", me);
        shmem_global_exit(status);
    }
    if (strcmp(way, "signal") == 0 && last)
        raise(SIGKILL);
    if (strcmp(way, "crash") == 0 && last)
        *(volatile int*)8 = 1;
    if (strcmp(way, "early") == 0 && last) { /* the others' barrier is taken for that of finalize */
        shmem_finalize();
        return 0;
    }
    if (strcmp(way, "fatal") == 0 && last)
        shmem_long_p(&word, 1, n);
    if (strcmp(way, "exit") == 0 && last)
        exit(status);
    if (strcmp(way, "no_finalize") == 0 || (strcmp(way, "leave") == 0 && last))
        return 0;
    if (strcmp(way, "_exit") == 0)
        _exit(0);
    if (strcmp(way, "wait") == 0 && last)
        pause();
    if (strcmp(way, "save") == 0) { /* takes longer than mpirun waits by itself */
        while (!is_asked) usleep(10000);
        sleep(3);
        printf("PE %d has saved\n", me);
        fflush(stdout);
        _exit(0);
    }
    if (strcmp(way, "well") != 0 && strcmp(way, "again") != 0 && strcmp(way, "status") != 0)
        shmem_barrier_all();
    shmem_finalize();
    if (strcmp(way, "again") == 0) {
        shmem_init();
        shmem_long_p(&word, me + 1, (me + 1) % n);
        shmem_barrier_all();
        printf("again: %ld\n", word);
        shmem_finalize();
    }
    return strcmp(way, "status") == 0 && last ? status : 0;
}
