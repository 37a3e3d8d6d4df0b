/* Two PEs that enter two collectives in different orders, and so wait for each other for ever. */
#include <shmem.h>

int main(void) {
    shmem_init();
    shmem_team_t team;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 2, NULL, 0, &team);
    if (shmem_my_pe() == 0) {
        shmem_team_sync(team);
        shmem_sync_all();
    } else {
        shmem_sync_all();
        shmem_team_sync(team);
    }
    shmem_finalize();
    return 0;
}
