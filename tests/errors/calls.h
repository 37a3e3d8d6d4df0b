/* Between errors.cpp, which knows what the arguments on the command line mean, and calls.c, which make_calls.py writes.
 */
#ifndef ERRORS_CALLS_H
#define ERRORS_CALLS_H

#include <shmemx.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct call {
    const char* name;
    void (*run)(void);
};
extern const struct call calls[];
extern const size_t calls_count;

void* pointer_argument(const char* name);
long long number_argument(const char* name);
shmem_ctx_t context_argument(void);
shmem_team_t team_argument(const char* name);
shmemx_plan_t plan_argument(const char* name);
void show_pointer(const void* result);
void show_number(long long result);

/* Static data of a shared library (library.c), which is not symmetric. */
void* library_data(void);

#ifdef __cplusplus
}
#endif

#endif
