/* Loaded first into the PEs of heddle-info --check: goes wrong in the way that FAULT names, where PE FAULT_PE is the
 * target, or the PE itself. */
#define HEDDLE_NO_INLINE
#include <shmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_fault(const char* name, int pe) {
    const char* fault = getenv("FAULT");
    return fault && strcmp(fault, name) == 0 && atoi(getenv("FAULT_PE")) == pe;
}

__attribute__((constructor)) static void differ(void) {
    const char* pe = getenv("HEDDLE_PE");
    if (pe && is_fault("setting", atoi(pe)))
        setenv("UCX_TCP_PREFER_DEFAULT", "n", 1);
    if (pe && is_fault("token", atoi(pe)))
        setenv("HEDDLE_LAUNCH_TOKEN", "hidden", 1);
    if (pe && is_fault("stays", atoi(pe))) {
        char line[32];
        const int bytes = snprintf(line, sizeof line, "pid %d\n", (int)getpid());
        while (write(1, line, (size_t)bytes) == bytes) pause();
    }
}

void shmem_uint64_put(uint64_t* dest, const uint64_t* source, size_t nelems, int pe) {
    uint64_t* copy = malloc(nelems * sizeof *copy);
    memcpy(copy, source, nelems * sizeof *copy);
    if (is_fault(nelems == 1 ? "word" : "block", pe))
        copy[nelems / 2] ^= 1;
    pshmem_uint64_put(dest, copy, nelems, pe);
    pshmem_quiet();
    free(copy);
}

void shmem_uint64_get(uint64_t* dest, const uint64_t* source, size_t nelems, int pe) {
    while (is_fault("hang", pe)) pause();
    pshmem_uint64_get(dest, source, nelems, pe);
    if (is_fault("get", pe))
        dest[0] ^= 1;
}

uint64_t shmem_uint64_atomic_fetch_add(uint64_t* dest, uint64_t value, int pe) {
    return pshmem_uint64_atomic_fetch_add(dest, is_fault("atomic", pe) ? value + 1 : value, pe);
}

void* shmem_ptr(const void* dest, int pe) {
    return is_fault("memory", shmem_my_pe()) && pe != shmem_my_pe() ? NULL : pshmem_ptr(dest, pe);
}
