/* What the Fortran module has of C. The predefined handles, as its variables: Fortran has no constant that is the
 * address of a C object. Whoever compiles the module defines them; they are set before the program begins. */
#include <shmem.h>
#include <stdio.h>

extern shmem_team_t heddle_fortran_team_world, heddle_fortran_team_shared;
extern shmem_ctx_t heddle_fortran_ctx_default;
void heddle_fortran_handles(void);

/* The module has a pointer to it, so that the linker takes this file with the module. */
__attribute__((constructor)) void heddle_fortran_handles(void) {
    heddle_fortran_team_world = SHMEM_TEAM_WORLD;
    heddle_fortran_team_shared = SHMEM_TEAM_SHARED;
    heddle_fortran_ctx_default = SHMEM_CTX_DEFAULT;
}

/* Ends the job: shmem_alloc has a shape of so many extents for an array of another rank. Fortran's own `write` would
 * leave the path of its source in the library. */
void heddle_fortran_end_by_shape(int extents, int rank);
void heddle_fortran_end_by_shape(int extents, int rank) {
    fprintf(stderr,
            "heddle [pe %d] shmem_alloc: shape has %d elements: must have as many as array has dimensions: %d\n",
            shmem_my_pe(), extents, rank);
    shmem_global_exit(1);
}
