/* The types and constants of shmemx.h, and the slow path of its inlined functions. */
#ifndef HEDDLE_REQUEST_H
#define HEDDLE_REQUEST_H

#include <heddle/abi.h>

/* The handle of a request; opaque to programs. Inlined code reads the lowest bit, HEDDLE_REQUEST_SKIP_POST: where it is
 * set, an operation that is complete when it returns need not be posted to the request. HEDDLE_REQUEST_COMPLETE is a
 * PRIVATE request to which nothing but such operations was posted. In checked runs no handle has the bit, so that every
 * operation is posted and checked. */
typedef struct heddle_request* shmemx_request_t;
#define SHMEMX_REQUEST_NULL ((shmemx_request_t)0)
#define HEDDLE_REQUEST_SKIP_POST 1
#define HEDDLE_REQUEST_COMPLETE ((shmemx_request_t)HEDDLE_REQUEST_SKIP_POST)

/* Options of shmemx_request_allocate. PRIVATE: one thread at a time posts, and another may wait. SHARED: any number of
 * threads post, test and wait at the same time. */
#define SHMEMX_REQUEST_PRIVATE 0L
#define SHMEMX_REQUEST_SHARED 1L

/* The handle of a plan: recorded collectives (shmemx_plan_begin); opaque. */
typedef struct heddle_plan* shmemx_plan_t;
#define SHMEMX_PLAN_NULL ((shmemx_plan_t)0)

/* Options of shmem_ctx_create and shmem_team_create_ctx in addition to those of the standard; at most one of the two.
 * ORDERED: the deliveries of one thread to one PE keep program order. RELAXED: deliveries may use several network
 * interfaces and arrive in any order until a fence or quiet. Neither: the standard's order, none until a fence or quiet;
 * treated as RELAXED in this version. */
#define SHMEMX_CTX_ORDERED (1L << 16)
#define SHMEMX_CTX_RELAXED (1L << 17)

/* The memory of a context in bytes, however many PEs there are. The contexts of a team share one table of peers. */
#define HEDDLE_CONTEXT_BYTES 128

/* How a context orders its deliveries to one PE. NONE: only fences and quiets order them. RAIL: all operations use one
 * network interface, which keeps their order. REORDER: operations use several interfaces, and the target applies them
 * in order. */
#define SHMEMX_ORDER_NONE 0
#define SHMEMX_ORDER_RAIL 1
#define SHMEMX_ORDER_REORDER 2

/* What the processes of a job are to pass on to each other to become its PEs (shmemx_get_uniqueid): bytes without
 * pointers, the same on every host. */
typedef struct {
    unsigned char opaque[128];
} shmemx_uniqueid_t;

/* The result of shmemx_ctx_info. */
typedef struct {
    long options;   /* the options that the context was created with */
    long given;     /* the options that are in force */
    int stream_set; /* number of the stream set that the calling thread sends through, or else of the context's newest;
                       -1: none, nothing was sent to another node */
    int lock;       /* 1: others have sent on the channel, and messages take its lock in turns; 0: none have */
    int rails;      /* network interfaces that its operations are spread over; 0: the job is on one node */
    int channel;    /* number of the channel of that stream set, on each rail; -1: none */
    size_t bytes;   /* memory of the context: HEDDLE_CONTEXT_BYTES, its stream sets, and their send rings */
    int order;      /* SHMEMX_ORDER_...: how deliveries to one PE keep program order */
    int channels;   /* that contexts of the PE take, on each rail (HEDDLE_NET_CHANNELS); 0: the job is on one node */
} shmemx_ctx_info_t;

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/* The slow path of the nbe functions: as heddle_slow_put_nbi, heddle_slow_get_nbi and heddle_slow_amo_nbi of
 * heddle/abi.h, but complete when *req is. fetch: receives the old value, or NULL. */
HEDDLE_COLD void heddle_slow_put_nbe(void* dest, const void* source, size_t nelems, int pe, size_t element_bytes,
                                     const char* function, shmem_ctx_t ctx, shmemx_request_t* req);
HEDDLE_COLD void heddle_slow_get_nbe(void* dest, const void* source, size_t nelems, int pe, size_t element_bytes,
                                     const char* function, shmem_ctx_t ctx, shmemx_request_t* req);
HEDDLE_COLD void heddle_slow_amo_nbe(const void* dest, uint64_t operand, int pe, uint64_t compare, size_t bytes,
                                     enum heddle_amo_op op, const char* function, shmem_ctx_t ctx,
                                     shmemx_request_t* req, void* fetch);
/* Posts an operation that is complete to *req, whose handle lacks HEDDLE_REQUEST_SKIP_POST: *req may be
 * SHMEMX_REQUEST_NULL, a SHARED request or, in a checked run, any. */
HEDDLE_COLD void heddle_slow_join(shmemx_request_t* req, const char* function);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
