/* The hot path of the nbe functions: that of heddle/hot_path.h, and at most 3 instructions to join the request, kept by
 * tests/budgets. An on-node operation is complete when it returns, so a request has nothing to count. Transfers of
 * HEDDLE_LARGE_BYTES and operations to other nodes go to the library, which may complete them later. */
#ifndef HEDDLE_REQUEST_PATH_H
#define HEDDLE_REQUEST_PATH_H

#include <heddle/hot_path.h>
#include <heddle/request.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Posts an operation that is complete to *req: nothing to do where the handle has HEDDLE_REQUEST_SKIP_POST. */
HEDDLE_LOCAL void heddle_join(const char* function, shmemx_request_t* req) {
    if (HEDDLE_UNLIKELY(((uintptr_t)*req & HEDDLE_REQUEST_SKIP_POST) == 0))
        heddle_slow_join(req, function);
}

/* The body of shmemx_put_nbe: heddle_put_nbi under *req. */
HEDDLE_LOCAL void heddle_put_nbe(const char* function, shmem_ctx_t ctx, void* dest, const void* source, size_t nelems,
                                 size_t element_bytes, int pe, shmemx_request_t* req) {
    struct heddle_stream* stream;
    if (heddle_put_inline(ctx, dest, source, nelems, element_bytes, pe)) {
        heddle_join(function, req);
        return;
    }
    stream = req != NULL ? heddle_put_word_far(ctx, dest, source, nelems, element_bytes, pe, 0, req) : NULL;
    if (HEDDLE_LIKELY(stream != NULL))
        heddle_tell_sender(stream);
    else
        heddle_slow_put_nbe(dest, source, nelems, pe, element_bytes, function, ctx, req);
}

/* The body of shmemx_get_nbe: heddle_get_nbi under *req. */
HEDDLE_LOCAL void heddle_get_nbe(const char* function, shmem_ctx_t ctx, void* dest, const void* source, size_t nelems,
                                 size_t element_bytes, int pe, shmemx_request_t* req) {
    if (heddle_get_inline(ctx, dest, source, nelems, element_bytes, pe))
        heddle_join(function, req);
    else
        heddle_slow_get_nbe(dest, source, nelems, pe, element_bytes, function, ctx, req);
}

/* The body of the nbe atomics: heddle_amo_nbi under *req. */
HEDDLE_LOCAL void heddle_amo_nbe(const char* function, shmem_ctx_t ctx, enum heddle_amo_op op, void* fetch,
                                 const void* dest, const void* operand, const void* compare, size_t bytes, int pe,
                                 shmemx_request_t* req) {
    uintptr_t offset;
    size_t region;
    uint64_t value = heddle_bits(operand, bytes), expected = heddle_bits(compare, bytes), old;
    char* base = heddle_on_node(ctx, dest, pe, &offset, &region);
    if (HEDDLE_LIKELY(base != NULL)) {
        old = heddle_amo_on(op, base + offset, value, expected, bytes);
        if (fetch)
            memcpy(fetch, &old, bytes);
        heddle_join(function, req);
    } else {
        heddle_slow_amo_nbe(dest, value, pe, expected, bytes, op, function, ctx, req, fetch);
    }
}

#ifdef __cplusplus
}
#endif

#endif
