/* A PE number that there is not. */
#include <shmem.h>

static long word;

int main(void) {
    shmem_init();
    shmem_long_p(&word, 1, 5);
    return 0;
}
