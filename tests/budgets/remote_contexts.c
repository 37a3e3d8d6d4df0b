/* Puts of a word to another node through two contexts in turns, for their instructions to be counted: run by
 * remote_put.py. */
#include <shmem.h>

enum { kOperations = 100000, kWords = 4096, kContexts = 2 };

__attribute__((noipa)) void run_p(const shmem_ctx_t* contexts, long* heap) {
    for (long i = 0; i < kOperations; ++i) shmem_ctx_long_p(contexts[i % kContexts], &heap[i * 7 % kWords], i, 1);
}

__attribute__((noipa)) void run_put_nbi(const shmem_ctx_t* contexts, long* heap) {
    for (long i = 0; i < kOperations; ++i)
        shmem_ctx_long_put_nbi(contexts[i % kContexts], &heap[i * 7 % kWords], &i, 1, 1);
}

int main(void) {
    shmem_init();
    long* heap = shmem_calloc(kWords, sizeof *heap);
    shmem_ctx_t contexts[kContexts] = {SHMEM_CTX_DEFAULT, SHMEM_CTX_INVALID};
    shmem_ctx_create(SHMEM_CTX_PRIVATE, &contexts[1]);
    if (shmem_my_pe() == 0) {
        run_p(contexts, heap);
        run_put_nbi(contexts, heap);
    }
    shmem_barrier_all();
    shmem_ctx_destroy(contexts[1]);
    shmem_finalize();
    return 0;
}
