// heap_size BYTES: the heap, set by SHMEM_SYMMETRIC_SIZE, has exactly BYTES, rounded up to pages; both of its ends can
// be reached from the neighbour. Touches two pages only, so that it may be larger than the machine's memory.
#include "check.h"
#include "tables.h"

#include <cstdlib>

using namespace conformance;

int main(int argc, char** argv) {
    start("heap_size");
    subject = "SHMEM_SYMMETRIC_SIZE";
    CHECK_EQ(argc, 2);
    const size_t asked = strtoull(argv[1], nullptr, 0), bytes = (asked + 4095) / 4096 * 4096;
    CHECK(!shmem_malloc(bytes + 1));
    auto* all = static_cast<char*>(shmem_malloc(bytes));
    CHECK_EQ(all != nullptr, bytes > 0);
    const int next = (pe + 1) % n_pes, previous = (pe + n_pes - 1) % n_pes;
    if (all) {
        shmem_char_p(all, static_cast<char>(pe + 1), next);
        shmem_char_p(all + bytes - 1, static_cast<char>(pe + 50), next);
        shmem_barrier_all();
        CHECK_EQ(all[0], previous + 1);
        CHECK_EQ(all[bytes - 1], previous + 50);
        CHECK_EQ(shmem_char_g(all + bytes - 1, next), pe + 50);
    }
    return finish();
}
