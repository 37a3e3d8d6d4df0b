/* The types and constants of shmemx.h, and the slow path of its inlined functions. */
#ifndef HEDDLE_REQUEST_H
#define HEDDLE_REQUEST_H

#include <heddle/abi.h>

/* A handle. Opaque to programs; inlined code reads its lowest bit alone: set, an operation that is complete when it
 * returns has nothing to tell the request. HEDDLE_REQUEST_COMPLETE is a PRIVATE request that holds such operations
 * only. In checked runs no handle has the bit, so that every operation tells, and is checked. */
typedef struct heddle_request* shmemx_request_t;
#define SHMEMX_REQUEST_NULL ((shmemx_request_t)0)
#define HEDDLE_REQUEST_SKIP_POST 1
#define HEDDLE_REQUEST_COMPLETE ((shmemx_request_t)HEDDLE_REQUEST_SKIP_POST)

/* Options of shmemx_request_allocate. */
#define SHMEMX_REQUEST_PRIVATE 0L
#define SHMEMX_REQUEST_SHARED 1L

/* Options of shmem_ctx_create and shmem_team_create_ctx, beside those of the standard; at most one of the two.
 * ORDERED: deliveries to one PE keep program order. RELAXED: they may take several ways and arrive in any order until a
 * fence or quiet. Neither: as the standard has it, which gives no order and promises no use of it. */
#define SHMEMX_CTX_ORDERED (1L << 16)
#define SHMEMX_CTX_RELAXED (1L << 17)

/* What a context takes in its PE, however many PEs there are. The contexts of a team share one table of their peers. */
#define HEDDLE_CONTEXT_BYTES 128

/* How a context orders its deliveries to one PE. NONE: only fences and quiets order them. RAIL: all operations use one
 * network interface, which keeps their order. REORDER: operations use several interfaces, and the target applies them in
 * order. */
#define SHMEMX_ORDER_NONE 0
#define SHMEMX_ORDER_RAIL 1
#define SHMEMX_ORDER_REORDER 2

/* What shmemx_ctx_info tells. */
typedef struct {
    long options;   /* asked for when it was created */
    long given;     /* the options that hold */
    int stream_set; /* the number of its way to the network; -1: it has none, and needs none on the node */
    int lock;       /* 1: operations take a lock */
    int rails;      /* network paths that its operations are spread over; 0 on the node */
    size_t bytes;   /* HEDDLE_CONTEXT_BYTES, and what its way to the network takes */
    int order;      /* SHMEMX_ORDER_...: how deliveries to one PE keep program order */
} shmemx_ctx_info_t;

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/* As their namesakes of heddle/abi.h, under *req. */
HEDDLE_COLD void heddle_slow_put_nbe(void* dest, const void* source, size_t nelems, int pe, size_t element_bytes,
                                     const char* function, shmem_ctx_t ctx, shmemx_request_t* req);
HEDDLE_COLD void heddle_slow_get_nbe(void* dest, const void* source, size_t nelems, int pe, size_t element_bytes,
                                     const char* function, shmem_ctx_t ctx, shmemx_request_t* req);
HEDDLE_COLD void heddle_slow_amo_nbe(const void* dest, uint64_t operand, int pe, uint64_t compare, size_t bytes,
                                     enum heddle_amo_op op, const char* function, shmem_ctx_t ctx,
                                     shmemx_request_t* req, void* fetch);
/* An operation that is complete joins *req, whose handle wants to be told. */
HEDDLE_COLD void heddle_slow_join(shmemx_request_t* req, const char* function);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
