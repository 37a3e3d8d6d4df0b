/* Takes the address of a function, which in an executable at a fixed address is that of its own stub for it. */
#include <shmem.h>

static long word;

int main(void) {
    void (*volatile put)(long*, long, int) = shmem_long_p;
    shmem_init();
    put(&word, 1, shmem_my_pe());
    shmem_finalize();
    return word != 1;
}
