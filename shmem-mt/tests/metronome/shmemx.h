/* The part of Heddle's extensions that the programs of SHMEM-MT use, as the metronome has it. */
#ifndef METRONOME_SHMEMX_H
#define METRONOME_SHMEMX_H

#include "shmem.h"

#define HEDDLE_SHMEMX 1

#ifdef __cplusplus
extern "C" {
#endif

typedef struct metronome_request* shmemx_request_t;
#define SHMEMX_REQUEST_NULL ((shmemx_request_t)0)
#define SHMEMX_REQUEST_SHARED 1L

#define SHMEMX_CTX_RELAXED (1L << 17)
#define SHMEMX_CTX_ORDERED (1L << 18)
#define SHMEMX_ORDER_RAIL 1
#define SHMEMX_ORDER_REORDER 2

typedef struct {
    long given;
    int rails;
    int order;
} shmemx_ctx_info_t;

int shmemx_ctx_info(shmem_ctx_t ctx, shmemx_ctx_info_t* info);

int shmemx_request_allocate(shmemx_request_t* request, long options);
void shmemx_request_free(shmemx_request_t* request);
void shmemx_request_fence(shmemx_request_t* request);
void shmemx_request_wait(shmemx_request_t* request);

void shmemx_putmem_nbe(void* dest, const void* source, size_t bytes, int pe, shmemx_request_t* request);
void shmemx_putmem_signal_nbe(void* dest, const void* source, size_t bytes, uint64_t* signal, uint64_t value,
                              int operation, int pe, shmemx_request_t* request);
void shmemx_getmem_nbe(void* dest, const void* source, size_t bytes, int pe, shmemx_request_t* request);
void shmemx_long_atomic_fetch_add_nbe(long* fetch, long* dest, long value, int pe, shmemx_request_t* request);
void shmemx_ctx_putmem_nbe(shmem_ctx_t ctx, void* dest, const void* source, size_t bytes, int pe,
                           shmemx_request_t* request);
void shmemx_ctx_putmem_signal_nbe(shmem_ctx_t ctx, void* dest, const void* source, size_t bytes, uint64_t* signal,
                                  uint64_t value, int operation, int pe, shmemx_request_t* request);
void shmemx_ctx_getmem_nbe(shmem_ctx_t ctx, void* dest, const void* source, size_t bytes, int pe,
                           shmemx_request_t* request);
void shmemx_ctx_long_atomic_fetch_add_nbe(shmem_ctx_t ctx, long* fetch, long* dest, long value, int pe,
                                          shmemx_request_t* request);

void shmemx_long_atomic_fetch_nbe(long* fetch, const long* source, int pe, shmemx_request_t* request);
void shmemx_long_atomic_compare_swap_nbe(long* fetch, long* dest, long cond, long value, int pe,
                                         shmemx_request_t* request);
void shmemx_uint64_atomic_xor_nbe(uint64_t* dest, uint64_t value, int pe, shmemx_request_t* request);
void shmemx_ctx_long_atomic_fetch_nbe(shmem_ctx_t ctx, long* fetch, const long* source, int pe,
                                      shmemx_request_t* request);
void shmemx_ctx_long_atomic_compare_swap_nbe(shmem_ctx_t ctx, long* fetch, long* dest, long cond, long value, int pe,
                                             shmemx_request_t* request);
void shmemx_ctx_uint64_atomic_xor_nbe(shmem_ctx_t ctx, uint64_t* dest, uint64_t value, int pe,
                                      shmemx_request_t* request);

int shmemx_team_sync_mt(shmem_team_t team, int thread, int threads);
int shmemx_team_barrier_mt(shmem_team_t team, int thread, int threads);
int shmemx_long_broadcast_mt(shmem_team_t team, long* dest, const long* source, size_t nelems, int root, int thread,
                             int threads);
int shmemx_long_collect_mt(shmem_team_t team, long* dest, const long* source, size_t nelems, int thread, int threads);
int shmemx_long_fcollect_mt(shmem_team_t team, long* dest, const long* source, size_t nelems, int thread, int threads);
int shmemx_long_alltoall_mt(shmem_team_t team, long* dest, const long* source, size_t nelems, int thread, int threads);
int shmemx_double_sum_reduce_mt(shmem_team_t team, double* dest, const double* source, size_t nelems, int thread,
                                int threads);
int shmemx_long_max_reduce_mt(shmem_team_t team, long* dest, const long* source, size_t nelems, int thread,
                              int threads);

void shmemx_long_broadcast_nbe(shmem_team_t team, long* dest, const long* source, size_t nelems, int root,
                               shmemx_request_t* request);
void shmemx_long_fcollect_nbe(shmem_team_t team, long* dest, const long* source, size_t nelems,
                              shmemx_request_t* request);
void shmemx_long_alltoall_nbe(shmem_team_t team, long* dest, const long* source, size_t nelems,
                              shmemx_request_t* request);
void shmemx_double_sum_reduce_nbe(shmem_team_t team, double* dest, const double* source, size_t nelems,
                                  shmemx_request_t* request);
void shmemx_long_sum_reduce_nbe(shmem_team_t team, long* dest, const long* source, size_t nelems,
                                shmemx_request_t* request);
void shmemx_progress(void);
int shmemx_progress_policy(const char* policy);

#ifdef __cplusplus
}
#endif

#endif
