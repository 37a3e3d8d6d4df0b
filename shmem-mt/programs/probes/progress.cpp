// Heddle's non-blocking collectives and progress policies.
#include <shmem.h>
#include <shmemx.h>
#ifndef HEDDLE_SHMEMX
#error another shmemx.h
#endif

int main() {
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    long value = 0;
    shmemx_progress();
    shmemx_long_sum_reduce_nbe(SHMEM_TEAM_WORLD, &value, &value, 1, &request);
    shmemx_request_wait(&request);
    return shmemx_progress_policy("auto");
}
