// Put with signal of OpenSHMEM 1.5, and the wait for the signal.
#include <shmem.h>
#include <stdint.h>

int main() {
    uint64_t signal = 0;
    long value = 0;
    shmem_putmem_signal(&value, &value, 8, &signal, 1, SHMEM_SIGNAL_SET, 0);
    shmem_signal_wait_until(&signal, SHMEM_CMP_EQ, 1);
    return 0;
}
