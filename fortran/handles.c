/* The predefined handles, as variables of the Fortran module: Fortran has no constant that is the address of a C object.
 * Whoever compiles the module defines them; they are set before the program begins. */
#include <shmem.h>

extern shmem_team_t heddle_fortran_team_world, heddle_fortran_team_shared;
extern shmem_ctx_t heddle_fortran_ctx_default;
void heddle_fortran_handles(void);

/* The module has a pointer to it, so that the linker takes this file with the module. */
__attribute__((constructor)) void heddle_fortran_handles(void) {
    heddle_fortran_team_world = SHMEM_TEAM_WORLD;
    heddle_fortran_team_shared = SHMEM_TEAM_SHARED;
    heddle_fortran_ctx_default = SHMEM_CTX_DEFAULT;
}
