// touch_heap MIB: writes and checks that much heap on every PE, for limits of /dev/shm, which must not matter.
#include "check.h"
#include "tables.h"

#include <cstdlib>

using namespace conformance;

int main(int argc, char** argv) {
    start("touch_heap");
    subject = "much heap";
    const size_t bytes = (argc > 1 ? strtoull(argv[1], nullptr, 10) : 1) << 20;
    auto* heap = static_cast<char*>(shmem_malloc(bytes));
    CHECK(heap);
    for (size_t at = 0; at < bytes; at += 4096) heap[at] = static_cast<char>(at / 4096 + static_cast<size_t>(pe));
    shmem_barrier_all();
    const int next = (pe + 1) % n_pes;
    for (size_t at = 0; at < bytes; at += 4096)
        if (shmem_char_g(heap + at, next) != static_cast<char>(at / 4096 + static_cast<size_t>(next)))
            fail(__FILE__, __LINE__, "wrong at byte %zu", at);
    return finish();
}
