/* The part of OpenSHMEM 1.5 that the programs of SHMEM-MT use, as the metronome has it. */
#ifndef METRONOME_SHMEM_H
#define METRONOME_SHMEM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SHMEM_MAJOR_VERSION 1
#define SHMEM_MINOR_VERSION 5
#define SHMEM_MAX_NAME_LEN 64

enum { SHMEM_CMP_EQ, SHMEM_CMP_NE, SHMEM_CMP_GT, SHMEM_CMP_GE, SHMEM_CMP_LT, SHMEM_CMP_LE };
enum { SHMEM_THREAD_SINGLE, SHMEM_THREAD_FUNNELED, SHMEM_THREAD_SERIALIZED, SHMEM_THREAD_MULTIPLE };
enum { SHMEM_SIGNAL_SET };
enum { SHMEM_CTX_SERIALIZED = 1, SHMEM_CTX_PRIVATE = 2, SHMEM_CTX_NOSTORE = 4 };

typedef struct metronome_context* shmem_ctx_t;
typedef long shmem_team_t;
typedef struct {
    int num_contexts;
} shmem_team_config_t;

extern shmem_ctx_t SHMEM_CTX_DEFAULT;
#define SHMEM_TEAM_WORLD 0L
#define SHMEM_TEAM_INVALID (-1L)

void shmem_init(void);
int shmem_init_thread(int requested, int* provided);
void shmem_finalize(void);
void shmem_global_exit(int status);
int shmem_my_pe(void);
int shmem_n_pes(void);
void shmem_info_get_name(char* name);
void shmem_info_get_version(int* major, int* minor);

void* shmem_malloc(size_t bytes);
void* shmem_align(size_t alignment, size_t bytes);
void shmem_free(void* memory);
void* shmem_ptr(const void* dest, int pe);

int shmem_ctx_create(long options, shmem_ctx_t* ctx);
void shmem_ctx_destroy(shmem_ctx_t ctx);

void shmem_ctx_long_p(shmem_ctx_t ctx, long* dest, long value, int pe);
long shmem_ctx_long_g(shmem_ctx_t ctx, const long* source, int pe);
void shmem_ctx_putmem(shmem_ctx_t ctx, void* dest, const void* source, size_t bytes, int pe);
void shmem_ctx_putmem_nbi(shmem_ctx_t ctx, void* dest, const void* source, size_t bytes, int pe);
void shmem_ctx_getmem(shmem_ctx_t ctx, void* dest, const void* source, size_t bytes, int pe);
void shmem_ctx_getmem_nbi(shmem_ctx_t ctx, void* dest, const void* source, size_t bytes, int pe);
void shmem_ctx_putmem_signal(shmem_ctx_t ctx, void* dest, const void* source, size_t bytes, uint64_t* signal,
                             uint64_t value, int operation, int pe);
void shmem_ctx_putmem_signal_nbi(shmem_ctx_t ctx, void* dest, const void* source, size_t bytes, uint64_t* signal,
                                 uint64_t value, int operation, int pe);
void shmem_ctx_long_atomic_add(shmem_ctx_t ctx, long* dest, long value, int pe);
long shmem_ctx_long_atomic_fetch(shmem_ctx_t ctx, const long* source, int pe);
long shmem_ctx_long_atomic_fetch_add(shmem_ctx_t ctx, long* dest, long value, int pe);
void shmem_ctx_long_atomic_fetch_add_nbi(shmem_ctx_t ctx, long* fetch, long* dest, long value, int pe);
long shmem_ctx_long_atomic_compare_swap(shmem_ctx_t ctx, long* dest, long cond, long value, int pe);
void shmem_ctx_long_atomic_set(shmem_ctx_t ctx, long* dest, long value, int pe);
void shmem_ctx_long_atomic_fetch_nbi(shmem_ctx_t ctx, long* fetch, const long* source, int pe);
void shmem_ctx_long_atomic_compare_swap_nbi(shmem_ctx_t ctx, long* fetch, long* dest, long cond, long value, int pe);
void shmem_ctx_uint64_atomic_xor(shmem_ctx_t ctx, uint64_t* dest, uint64_t value, int pe);
void shmem_ctx_fence(shmem_ctx_t ctx);
void shmem_ctx_quiet(shmem_ctx_t ctx);
void shmem_ctx_pe_quiet(shmem_ctx_t ctx, const int* pes, size_t count);

void shmem_long_p(long* dest, long value, int pe);
long shmem_long_g(const long* source, int pe);
void shmem_putmem(void* dest, const void* source, size_t bytes, int pe);
void shmem_putmem_nbi(void* dest, const void* source, size_t bytes, int pe);
void shmem_getmem(void* dest, const void* source, size_t bytes, int pe);
void shmem_getmem_nbi(void* dest, const void* source, size_t bytes, int pe);
void shmem_putmem_signal(void* dest, const void* source, size_t bytes, uint64_t* signal, uint64_t value, int operation,
                         int pe);
void shmem_putmem_signal_nbi(void* dest, const void* source, size_t bytes, uint64_t* signal, uint64_t value,
                             int operation, int pe);
void shmem_long_atomic_add(long* dest, long value, int pe);
long shmem_long_atomic_fetch(const long* source, int pe);
long shmem_long_atomic_fetch_add(long* dest, long value, int pe);
void shmem_long_atomic_fetch_add_nbi(long* fetch, long* dest, long value, int pe);
long shmem_long_atomic_compare_swap(long* dest, long cond, long value, int pe);
void shmem_long_atomic_set(long* dest, long value, int pe);
void shmem_long_atomic_fetch_nbi(long* fetch, const long* source, int pe);
void shmem_long_atomic_compare_swap_nbi(long* fetch, long* dest, long cond, long value, int pe);
void shmem_uint64_atomic_xor(uint64_t* dest, uint64_t value, int pe);
void shmem_fence(void);
void shmem_quiet(void);
void shmem_pe_quiet(const int* pes, size_t count); /* of OpenSHMEM 1.6 */

void shmem_long_wait_until(long* word, int comparison, long value);
uint64_t shmem_signal_wait_until(uint64_t* signal, int comparison, uint64_t value);
int shmem_long_test(long* word, int comparison, long value);
int shmem_uint64_test(uint64_t* word, int comparison, uint64_t value);

void shmem_barrier_all(void);
void shmem_sync_all(void);
int shmem_team_sync(shmem_team_t team);
int shmem_team_split_strided(shmem_team_t parent, int start, int stride, int size, const shmem_team_config_t* config,
                             long mask, shmem_team_t* team);
void shmem_team_destroy(shmem_team_t team);
int shmem_long_broadcast(shmem_team_t team, long* dest, const long* source, size_t nelems, int root);
int shmem_long_collect(shmem_team_t team, long* dest, const long* source, size_t nelems);
int shmem_long_fcollect(shmem_team_t team, long* dest, const long* source, size_t nelems);
int shmem_double_fcollect(shmem_team_t team, double* dest, const double* source, size_t nelems);
int shmem_long_alltoall(shmem_team_t team, long* dest, const long* source, size_t nelems);
int shmem_long_alltoalls(shmem_team_t team, long* dest, const long* source, ptrdiff_t dst, ptrdiff_t sst,
                         size_t nelems);
int shmem_double_sum_reduce(shmem_team_t team, double* dest, const double* source, size_t nelems);
int shmem_long_sum_reduce(shmem_team_t team, long* dest, const long* source, size_t nelems);
int shmem_long_max_reduce(shmem_team_t team, long* dest, const long* source, size_t nelems);
int shmem_double_sum_inscan(shmem_team_t team, double* dest, const double* source, size_t nelems);

#ifdef __cplusplus
}
#endif

#endif
