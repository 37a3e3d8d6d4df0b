/* Deprecated since OpenSHMEM 1.1: the old place of <shmem.h>. */
#include <shmem.h>
