/* Heddle's extensions of OpenSHMEM, all of them with the prefix shmemx_: none yet. The header exists so that programs
 * which include it compile. */
#ifndef HEDDLE_SHMEMX_H
#define HEDDLE_SHMEMX_H

#include <shmem.h>

#endif
