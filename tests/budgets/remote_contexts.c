/* Puts of a word to another node through two contexts in turns, for their instructions to be counted: run by
 * remote_put.py. */
#include <shmem.h>

enum { kOperations = 100000, kWords = 4096, kContexts = 2 };

int main(void) {
    shmem_init();
    long* heap = shmem_calloc(kWords, sizeof *heap);
    shmem_ctx_t contexts[kContexts] = {SHMEM_CTX_DEFAULT, SHMEM_CTX_INVALID};
    shmem_ctx_create(SHMEM_CTX_PRIVATE, &contexts[1]);
    if (shmem_my_pe() == 0)
        for (long i = 0; i < kOperations; ++i) {
            const long at = i * 7 % kWords;
            shmem_ctx_long_p(contexts[i % kContexts], &heap[at], i, 1);
            shmem_ctx_long_put_nbi(contexts[i % kContexts], &heap[at], &i, 1, 1);
        }
    shmem_barrier_all();
    shmem_ctx_destroy(contexts[1]);
    shmem_finalize();
    return 0;
}
