/* A job that is over before all of its connections are made. */
#include <shmem.h>

int main(void) {
    static long mine = 1, sum;
    shmem_init();
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &sum, &mine, 1);
    const int wrong = sum != shmem_n_pes();
    shmem_finalize();
    return wrong;
}
