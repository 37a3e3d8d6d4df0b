// What a library's headers say, and what its wrapper links: no feature, but what tells one build of it from another.
#include <shmem.h>

#if __has_include(<shmemx.h>)
#include <shmemx.h>
#endif

int main() {
    shmem_init();
    shmem_finalize();
    return 0;
}
