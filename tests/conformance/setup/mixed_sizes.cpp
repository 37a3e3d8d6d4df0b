// Compiled twice with different amounts of static data; PEs of both run in one job and share the heap.
#include "check.h"
#include "tables.h"

using namespace conformance;

#ifndef MIXED_BYTES
#define MIXED_BYTES 16
#endif

unsigned char bulk[MIXED_BYTES];

int main() {
    bulk[MIXED_BYTES - 1] = 77;
    // start() reads a static variable of PE 0, whose program may be the other one.
    shmem_init();
    pe = shmem_my_pe();
    n_pes = shmem_n_pes();
    subject = "programs of different size";
    CHECK_EQ(bulk[MIXED_BYTES - 1], 77);
    auto* heap = static_cast<long*>(shmem_calloc(static_cast<size_t>(n_pes), sizeof(long)));
    CHECK(heap);
    shmem_barrier_all();
    for (int to = 0; to < n_pes; ++to) shmem_long_p(&heap[pe], MIXED_BYTES + pe, to);
    memset(bulk, 5, sizeof bulk);
    shmem_barrier_all();
    for (int from = 0; from < n_pes; ++from) CHECK(heap[from] >= 16 && shmem_long_g(&heap[from], from) == heap[from]);
    CHECK_UNTOUCHED("own static data", bulk, 5, sizeof bulk);
    shmem_finalize();
    return 0;
}
