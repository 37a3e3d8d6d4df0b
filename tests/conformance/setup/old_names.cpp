// The deprecated names that have no types: start_pes, _my_pe, _num_pes, the memory functions; the deprecated constants;
// and shmem_pcontrol, which does nothing.
#include "check.h"

using namespace conformance;

namespace {

void memory() {
    subject = "shmalloc, shmemalign, shrealloc, shfree";
    auto* data = static_cast<long*>(shmalloc(100 * sizeof(long)));
    CHECK(data);
    for (long i = 0; i < 100; ++i) shmem_long_p(&data[i], i * 3 + pe, (pe + 1) % n_pes);
    shmem_barrier_all();
    const int previous = (pe + n_pes - 1) % n_pes;
    data = static_cast<long*>(shrealloc(data, 10000 * sizeof(long)));
    CHECK(data && shmem_addr_accessible(&data[9999], n_pes - 1));
    for (long i = 0; i < 100; ++i) CHECK_EQ(data[i], i * 3 + previous);
    void* aligned = shmemalign(8192, 10);
    CHECK(aligned && reinterpret_cast<uintptr_t>(aligned) % 8192 == 0);
    shfree(aligned);
    shfree(data);
    shfree(nullptr);
    CHECK(shmalloc(size_t{1} << 60) == nullptr);
}

// Constant expressions, as the specification has it; equal where two names are given to one thing.
static_assert(_SHMEM_CMP_EQ == SHMEM_CMP_EQ && _SHMEM_CMP_NE == SHMEM_CMP_NE && _SHMEM_CMP_LT == SHMEM_CMP_LT &&
                  _SHMEM_CMP_LE == SHMEM_CMP_LE && _SHMEM_CMP_GT == SHMEM_CMP_GT && _SHMEM_CMP_GE == SHMEM_CMP_GE,
              "comparisons");
static_assert(_SHMEM_MAJOR_VERSION == 1 && _SHMEM_MINOR_VERSION == 6 && _SHMEM_MAX_NAME_LEN == SHMEM_MAX_NAME_LEN,
              "version");
static_assert(_SHMEM_SYNC_VALUE == SHMEM_SYNC_VALUE && _SHMEM_BARRIER_SYNC_SIZE == SHMEM_BARRIER_SYNC_SIZE &&
                  _SHMEM_BCAST_SYNC_SIZE == SHMEM_BCAST_SYNC_SIZE &&
                  _SHMEM_COLLECT_SYNC_SIZE == SHMEM_COLLECT_SYNC_SIZE &&
                  _SHMEM_REDUCE_SYNC_SIZE == SHMEM_REDUCE_SYNC_SIZE &&
                  _SHMEM_REDUCE_MIN_WRKDATA_SIZE == SHMEM_REDUCE_MIN_WRKDATA_SIZE,
              "sizes");
static_assert(SHMEM_SYNC_SIZE > 0 && SHMEM_ALLTOALL_SYNC_SIZE > 0 && SHMEM_ALLTOALLS_SYNC_SIZE > 0, "sizes");
static_assert(sizeof(_SHMEM_VENDOR_STRING) <= SHMEM_MAX_NAME_LEN, "name");
long psync[SHMEM_REDUCE_SYNC_SIZE] = {SHMEM_SYNC_VALUE};

}  // namespace

int main() {
    subject = "start_pes";
    start_pes(0);
    const int first_answer = _my_pe();
    start("old_names");  // nested in start_pes
    CHECK_EQ(_my_pe(), pe);
    CHECK_EQ(first_answer, pe);
    CHECK_EQ(_num_pes(), n_pes);
    CHECK_EQ(psync[0], SHMEM_SYNC_VALUE);
    memory();
    subject = "shmem_pcontrol";
    shmem_pcontrol(0);
    shmem_pcontrol(1, "text", 2.5, &psync);
    shmem_pcontrol(-7, 1L);
    finish();
    CHECK_EQ(_my_pe(), pe);  // start_pes' own reference is there
    shmem_finalize();
    start_pes(99);  // init after finalize, by the old name
    CHECK_EQ(_num_pes(), n_pes);
    shmem_finalize();
    return 0;
}
