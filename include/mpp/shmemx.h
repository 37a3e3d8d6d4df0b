/* Deprecated since OpenSHMEM 1.1: the old place of <shmemx.h>. */
#include <shmemx.h>
