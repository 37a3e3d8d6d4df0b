// An exception on one PE leaves the scope of the environment: the job ends, and no PE waits for ever.
#include <shmem.hpp>

#include <cstdio>

int main() {
    try {
        const shmem::environment library;
        const shmem::array<int> kept(10);
        if (shmem::my_pe() == shmem::n_pes() - 1)
            throw std::runtime_error("on one PE");
        ::shmem_barrier_all();
    } catch (const std::exception& thrown) {
        std::printf("not reached: %s\n", thrown.what());
    }
}
