/* Example of the manual pages (see rma.c): a program of its own, which the test runs without a launcher. */
/* == shmemx_get_uniqueid == */
#include <shmemx.h>

/* A job of one process. With several, one makes the id and passes its bytes
   on to the others, each of which knows its number and how many there are. */
int main(void) {
    shmemx_uniqueid_t id;
    if (shmemx_get_uniqueid(&id) != 0)
        return 1;
    if (shmemx_init_uniqueid(&id, 0, 1) != 0)
        return 1;
    shmem_finalize();
    return 0;
}
