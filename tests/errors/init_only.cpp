// init_only WAY: starts and ends the library; with init_thread says what that returned, and tries again without the
// variables that may have been malformed; with system runs itself from inside a PE.
#include <shmem.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

int main(int argc, char** argv) {
    const char* way = argc > 1 ? argv[1] : "init";
    if (strcmp(way, "init_thread") == 0) {
        int provided = -1;
        const int first = shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
        for (const char* name :
             {"SHMEM_SYMMETRIC_SIZE", "SMA_SYMMETRIC_SIZE", "HEDDLE_BARRIER", "HEDDLE_MONITOR", "HEDDLE_PROGRESS",
              "HEDDLE_SPIN_US", "HEDDLE_YIELD_US", "HEDDLE_BROADCAST", "HEDDLE_COLLECT", "HEDDLE_FCOLLECT",
              "HEDDLE_ALLTOALL", "HEDDLE_REDUCE", "HEDDLE_SCAN", "HEDDLE_COLLECTIVE_THREADS", "HEDDLE_VECTOR",
              "HEDDLE_NET_TRANSPORT", "HEDDLE_OUT_OF_LINE"})
            unsetenv(name);
        const int second = shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
        printf("returned %d, then %d\n", first, second);
        if (second == 0)
            shmem_finalize();
        return 0;
    }
    shmem_init();
    if (strcmp(way, "inside") == 0)
        printf("%d PEs inside\n", shmem_n_pes());
    fflush(stdout);
    const int status = strcmp(way, "system") == 0 ? system((std::string(argv[0]) + " inside").c_str()) : 0;
    shmem_finalize();
    return status != 0;
}
