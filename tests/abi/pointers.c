/* The address of an inlined function is that of the exported one, in optimized code too, and the same as its twin's;
 * calls through it do what the inlined body does. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pshmem.h>
#include <stdio.h>

typedef void (*function)(void);

static int differences;

static void compare(const char* name, function here) {
    union {
        void* object;
        function code;
    } found;
    found.object = dlsym(RTLD_DEFAULT, name);
    if (found.code != here) {
        fprintf(stderr, "%s: dlsym finds another function than the program does\n", name);
        ++differences;
    }
}

#define COMPARE(name)                       \
    do {                                    \
        compare(#name, (function)name);     \
        compare("p" #name, (function)name); \
        compare(#name, (function)p##name);  \
    } while (0)

int main(void) {
    void (*volatile p)(long*, long, int) = shmem_long_p;
    long (*volatile g)(const long*, int) = shmem_long_g;
    long* cell;
    COMPARE(shmem_long_p);
    COMPARE(shmem_long_g);
    COMPARE(shmem_long_put);
    COMPARE(shmem_ctx_long_p);
    COMPARE(shmem_long_atomic_fetch_add);
    COMPARE(shmem_putmem);
    COMPARE(shmem_malloc);
    COMPARE(shmem_quiet);
    COMPARE(shmem_team_split_strided);
    COMPARE(shmem_long_sum_reduce);
    COMPARE(shmem_double_broadcast);
    COMPARE(shmem_set_lock);
    shmem_init();
    cell = (long*)shmem_calloc(1, sizeof(long));
    p(cell, 7, shmem_my_pe());
    if (g(cell, shmem_my_pe()) != 7 || shmem_long_g(cell, shmem_my_pe()) != 7) {
        fprintf(stderr, "a call through a pointer did something else\n");
        ++differences;
    }
    shmem_free(cell);
    shmem_finalize();
    return differences != 0;
}
