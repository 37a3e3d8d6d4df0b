// Prints the name and version of the MPI library. MPI allows this call before MPI_Init, so no launcher is needed.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <cstdio>

int main() {
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(text, &length);
    std::puts(text);
    return 0;
}
