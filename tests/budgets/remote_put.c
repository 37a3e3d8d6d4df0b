/* Puts of a word to another node, and atomics, for their instructions to be counted: run by remote_put.py. */
#include <shmem.h>
#include <shmemx.h>

enum { kOperations = 100000, kWords = 4096 };

__attribute__((noipa)) void run_p(long* heap) {
    for (long i = 0; i < kOperations; ++i) shmem_long_p(&heap[i * 7 % kWords], i, 1);
}

__attribute__((noipa)) void run_put_nbi(long* heap) {
    for (long i = 0; i < kOperations; ++i) shmem_long_put_nbi(&heap[i * 7 % kWords], &i, 1, 1);
}

__attribute__((noipa)) void run_sized_putmem_nbi(long* heap, size_t bytes) {
    for (long i = 0; i < kOperations; ++i) shmem_putmem_nbi(&heap[i * 7 % kWords], &i, bytes, 1);
}

__attribute__((noipa)) void run_sized_put_nbi(long* heap, size_t nelems) {
    for (long i = 0; i < kOperations; ++i) shmem_long_put_nbi(&heap[i * 7 % kWords], &i, nelems, 1);
}

__attribute__((noipa)) void run_int_put_nbi(int* heap) {
    for (int i = 0; i < kOperations; ++i) shmem_int_put_nbi(&heap[i * 7 % kWords], &i, 1, 1);
}

__attribute__((noipa)) void run_put_nbe(long* heap, shmemx_request_t* request) {
    for (long i = 0; i < kOperations; ++i) shmemx_long_put_nbe(&heap[i * 7 % kWords], &i, 1, 1, request);
}

__attribute__((noipa)) void run_captured_put_nbi(long* heap) {
    for (long i = 0; i < kOperations; ++i) shmem_long_put_nbi(&heap[i * 7 % kWords], &i, 1, 1);
}

__attribute__((noipa)) void run_add(long* heap) {
    for (long i = 0; i < kOperations; ++i) shmem_long_atomic_add(&heap[i * 7 % kWords], i, 1);
}

__attribute__((noipa)) void run_add_nbe(long* heap, shmemx_request_t* request) {
    for (long i = 0; i < kOperations; ++i) shmemx_long_atomic_add_nbe(&heap[i * 7 % kWords], i, 1, request);
}

int main(void) {
    shmem_init();
    long* heap = shmem_calloc(kWords, sizeof *heap);
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    if (shmem_my_pe() == 0) {
        run_p(heap);
        run_put_nbi(heap);
        run_sized_putmem_nbi(heap, sizeof *heap);
        run_sized_put_nbi(heap, 1);
        run_int_put_nbi((int*)heap);
        run_put_nbe(heap, &request);
        shmemx_request_begin(&request);
        run_captured_put_nbi(heap);
        shmemx_request_end(&request);
        run_add(heap);
        run_add_nbe(heap, &request);
        shmemx_request_wait(&request);
    }
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
