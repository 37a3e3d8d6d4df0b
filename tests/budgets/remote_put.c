/* Puts of a word to another node, for their instructions to be counted: run by remote_put.py. */
#include <shmem.h>
#include <shmemx.h>

enum { kOperations = 100000, kWords = 4096 };

static long words[kWords];

int main(void) {
    shmem_init();
    long* heap = shmem_calloc(kWords, sizeof *heap);
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    if (shmem_my_pe() == 0) {
        for (long i = 0; i < kOperations; ++i) {
            const long at = i * 7 % kWords;
            shmem_long_p(&heap[at], i, 1);
            shmem_long_put_nbi(&words[at], &i, 1, 1);
            shmemx_long_put_nbe(&heap[at], &i, 1, 1, &request);
        }
        shmemx_request_wait(&request);
    }
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
