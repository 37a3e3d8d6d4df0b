// Teams of OpenSHMEM 1.5, and the collectives over them.
#include <shmem.h>

int main() {
    shmem_team_t team;
    long value = 0;
    double sum = 0;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, 1, 0, 0, &team);
    shmem_long_alltoalls(team, &value, &value, 2, 2, 1);
    return shmem_long_collect(team, &value, &value, 1) + shmem_double_sum_reduce(team, &sum, &sum, 1);
}
