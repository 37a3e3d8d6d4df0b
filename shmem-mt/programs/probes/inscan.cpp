// Scans of OpenSHMEM 1.6.
#include <shmem.h>

int main() {
    double value = 0;
    return shmem_double_sum_inscan(SHMEM_TEAM_WORLD, &value, &value, 1);
}
