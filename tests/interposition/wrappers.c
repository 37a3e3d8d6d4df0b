/* A tool by hand: wrappers of some functions, by their second names or, with -DBY_NEXT, by dlsym(RTLD_NEXT). It is
 * compiled with the inlined functions, like any program; -DONLY_PUTMEM: shmem_putmem alone is wrapped, and the wrapper
 * puts by functions that are inlined, itself among them. */
#define _GNU_SOURCE
#include "counting.h"

#include <dlfcn.h>
#include <pshmem.h>
#include <string.h>

static struct count counts[] = {
    {"shmem_long_p", 0},       {"shmem_ctx_double_g", 0}, {"shmem_putmem", 0},      {"shmem_int_atomic_fetch_add", 0},
    {"shmem_longdouble_p", 0}, {"shmem_pcontrol", 0},     {"shmem_barrier_all", 0}, {"pcontrol_level_3", 0}};

/* The name of the symbol is not that of the function, of which the header has an inlined body. */
#define WRAPPER(result, name, parameters)         \
    result tool_##name parameters __asm__(#name); \
    __attribute__((visibility("default"))) result tool_##name parameters
#ifdef BY_NEXT
#define NEXT(name) ((__typeof(name)*)dlsym(RTLD_NEXT, #name))
#else
#define NEXT(name) p##name
#endif

#ifdef ONLY_PUTMEM
WRAPPER(void, shmem_putmem, (void* dest, const void* source, size_t nelems, int pe)) {
    COUNT(counts[2]);
    shmem_char_put((char*)dest, (const char*)source, nelems, pe);
    shmem_putmem(dest, source, nelems, pe);
}
#else
WRAPPER(void, shmem_long_p, (long* dest, long value, int pe)) {
    COUNT(counts[0]);
    NEXT(shmem_long_p)(dest, value, pe);
}
WRAPPER(double, shmem_ctx_double_g, (shmem_ctx_t ctx, const double* source, int pe)) {
    COUNT(counts[1]);
    return NEXT(shmem_ctx_double_g)(ctx, source, pe);
}
WRAPPER(void, shmem_putmem, (void* dest, const void* source, size_t nelems, int pe)) {
    COUNT(counts[2]);
    NEXT(shmem_putmem)(dest, source, nelems, pe);
}
WRAPPER(int, shmem_int_atomic_fetch_add, (int* dest, int value, int pe)) {
    COUNT(counts[3]);
    return NEXT(shmem_int_atomic_fetch_add)(dest, value, pe);
}
WRAPPER(void, shmem_longdouble_p, (long double* dest, long double value, int pe)) {
    COUNT(counts[4]);
    NEXT(shmem_longdouble_p)(dest, value, pe);
}
WRAPPER(void, shmem_barrier_all, (void)) {
    COUNT(counts[6]);
    NEXT(shmem_barrier_all)();
}
void tool_shmem_pcontrol(int level, ...) __asm__("shmem_pcontrol");
__attribute__((visibility("default"))) void tool_shmem_pcontrol(int level, ...) {
    COUNT(counts[5]);
    counts[7].n += level == 3;
    NEXT(shmem_pcontrol)(level);
}
#endif

__attribute__((destructor)) static void end(void) {
    write_counts(counts, (int)(sizeof counts / sizeof counts[0]));
}
