// Heddle's extensions: requests, and collectives that all threads of a PE call. Other libraries have a shmemx.h, too.
#include <shmem.h>
#include <shmemx.h>
#ifndef HEDDLE_SHMEMX
#error another shmemx.h
#endif

int main() {
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    long value = 0;
    shmemx_putmem_nbe(&value, &value, 8, 0, &request);
    shmemx_request_wait(&request);
    return shmemx_team_sync_mt(SHMEM_TEAM_WORLD, 0, 1);
}
