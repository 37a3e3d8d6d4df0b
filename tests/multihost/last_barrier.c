/* The last PE is late in the first barrier of shmem_finalize between hosts, in the way that the first argument names. It
 * has PMIx_Fence_nb in its own hands for that; the programs of this folder are linked so that plugins see their names. */
#include <dlfcn.h>
#include <shmem.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char* way = "well";
static volatile int is_late;
static long word;

typedef void (*Done)(int status, void* argument);

int PMIx_Fence_nb(const void* pes, size_t n_pes, const void* info, size_t n_info, Done done, void* argument) {
    void* const library = dlopen("libpmix.so.2", RTLD_NOW);
    int (*const fence)(const void*, size_t, const void*, size_t, Done, void*) =
        (int (*)(const void*, size_t, const void*, size_t, Done, void*))dlsym(library, "PMIx_Fence_nb");
    if (is_late) {
        is_late = 0;
        printf("late\n");
        fflush(stdout);
        if (strcmp(way, "slow") == 0)
            sleep(5);
        if (strcmp(way, "stopped") == 0)
            raise(SIGSTOP);
        if (strcmp(way, "killed") == 0)
            raise(SIGKILL);
    }
    return fence(pes, n_pes, info, n_info, done, argument);
}

int main(int argc, char** argv) {
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes();
    way = argc > 1 ? argv[1] : way;
    printf("pid %d\n", getpid());
    for (int i = 0; i < 100; ++i) {
        shmem_long_p(&word, i, (me + 1) % n);
        shmem_barrier_all();
    }
    if (strcmp(way, "stopped") == 0)
        sleep(3); /* only a PE that has been heard is missed: heartbeats come twice a second */
    is_late = strcmp(way, "well") != 0 && me == n - 1;
    shmem_finalize();
    printf("finalized\n");
    return 0;
}
