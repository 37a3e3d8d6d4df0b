// global_exit STATUS: the last PE ends the job with STATUS while the others wait for ever; test_jobs.py looks at the
// result.
#include "check.h"
#include "tables.h"

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
    static long never;
    conformance::start("global_exit");
    if (conformance::pe == conformance::n_pes - 1) {
        printf("leaving\n");
        shmem_global_exit(argc > 1 ? atoi(argv[1]) : 0);
    }
    shmem_long_wait_until(&never, SHMEM_CMP_NE, 0);
    return 99;
}
