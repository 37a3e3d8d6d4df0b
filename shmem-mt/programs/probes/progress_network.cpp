// What the library's thread for the network does.
#include <shmem.h>
#include <shmemx.h>
#ifndef HEDDLE_SHMEMX
#error another shmemx.h
#endif

int main() {
    return shmemx_progress_network()[0];
}
