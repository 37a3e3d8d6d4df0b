/* The hot path: on-node put, get and atomics as loads and stores, inlined into the caller.
 *
 * Each body is written once, for all types: sizes and operations are constants wherever a body is inlined, so the
 * compiler removes the switches. heddle/inline.h gives the bodies their OpenSHMEM names. The library's slow path uses
 * these bodies, too. Any thread may call them, at any time.
 *
 * Cost of shmem_long_p on the node: 9 instructions, one of them a branch, kept by tests/budgets. No call, no lock, no
 * write to the context. Memory order: single values are relaxed atomic accesses, longer data is copied as bytes
 * (docs/internals/memory-model.md).
 */
#ifndef HEDDLE_HOT_PATH_H
#define HEDDLE_HOT_PATH_H

#include <heddle/abi.h>
#include <string.h>

#define HEDDLE_LOCAL extern __inline__ __attribute__((__gnu_inline__, __always_inline__))
#define HEDDLE_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define HEDDLE_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/* Memory orders of single values and atomics. Normally relaxed: shmem_fence and shmem_quiet order them (OpenSHMEM 1.6,
 * section 9.12). ThreadSanitizer does not model fences: in code compiled for it the accesses carry the order that a
 * fence would give, and there are no fences. */
#ifdef HEDDLE_UNDER_TSAN
#define HEDDLE_STORE_ORDER __ATOMIC_RELEASE
#define HEDDLE_LOAD_ORDER __ATOMIC_ACQUIRE
#define HEDDLE_AMO_ORDER __ATOMIC_ACQ_REL
#define HEDDLE_FENCE(order) ((void)0)
#define HEDDLE_COPIES_AS_CALLS 1 /* ThreadSanitizer sees a copy only where the compiler calls memcpy */
#else
#define HEDDLE_STORE_ORDER __ATOMIC_RELAXED
#define HEDDLE_LOAD_ORDER __ATOMIC_RELAXED
#define HEDDLE_AMO_ORDER __ATOMIC_RELAXED
#define HEDDLE_FENCE(order) __atomic_thread_fence(order)
#define HEDDLE_COPIES_AS_CALLS 0
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Types that may alias every object: a PE's symmetric memory is reached through other addresses than its own
 * objects. A put to the calling PE also changes objects that the compiler knows under their own types. */
typedef uint8_t __attribute__((__may_alias__)) heddle_u8;
typedef uint16_t __attribute__((__may_alias__)) heddle_u16;
typedef uint32_t __attribute__((__may_alias__)) heddle_u32;
typedef uint64_t __attribute__((__may_alias__)) heddle_u64;

/* Stores one value of 1, 2, 4 or 8 bytes, untorn; another size as bytes. `bytes` is a constant wherever inlined. */
HEDDLE_LOCAL void heddle_store(void* to, const void* from, size_t bytes) {
    switch (bytes) {
        case 1:
            __atomic_store_n((heddle_u8*)to, *(const heddle_u8*)from, HEDDLE_STORE_ORDER);
            break;
        case 2:
            __atomic_store_n((heddle_u16*)to, *(const heddle_u16*)from, HEDDLE_STORE_ORDER);
            break;
        case 4:
            __atomic_store_n((heddle_u32*)to, *(const heddle_u32*)from, HEDDLE_STORE_ORDER);
            break;
        case 8:
            __atomic_store_n((heddle_u64*)to, *(const heddle_u64*)from, HEDDLE_STORE_ORDER);
            break;
        default:
            memcpy(to, from, bytes);
    }
}

/* Loads one value of 1, 2, 4 or 8 bytes, untorn; another size as bytes. `bytes` is a constant wherever inlined. */
HEDDLE_LOCAL void heddle_load(void* to, const void* from, size_t bytes) {
    switch (bytes) {
        case 1:
            *(heddle_u8*)to = __atomic_load_n((const heddle_u8*)from, HEDDLE_LOAD_ORDER);
            break;
        case 2:
            *(heddle_u16*)to = __atomic_load_n((const heddle_u16*)from, HEDDLE_LOAD_ORDER);
            break;
        case 4:
            *(heddle_u32*)to = __atomic_load_n((const heddle_u32*)from, HEDDLE_LOAD_ORDER);
            break;
        case 8:
            *(heddle_u64*)to = __atomic_load_n((const heddle_u64*)from, HEDDLE_LOAD_ORDER);
            break;
        default:
            memcpy(to, from, bytes);
    }
}

/* Finds `address` on pe: at the returned base plus *offset, in a region of *region bytes. NULL means the slow path: a
 * wrong address or pe, and memory that loads and stores do not reach, have no offset below the size (heddle/abi.h). The
 * caller may access at most HEDDLE_SHORT_BYTES there without a comparison with *region, thanks to the gap behind it. */
HEDDLE_LOCAL char* heddle_on_node(shmem_ctx_t ctx, const void* address, int pe, uintptr_t* offset, size_t* region) {
    const struct heddle_peer* peer;
    char* base = NULL;
    if (HEDDLE_UNLIKELY(ctx == SHMEM_CTX_INVALID))
        return NULL;
    peer = ctx->peers + pe;
    *offset = (uintptr_t)address - heddle_abi_1.heap_base;
    *region = peer->heap_size;
    if (HEDDLE_LIKELY(*offset < *region)) {
        base = peer->heap;
    } else {
        *offset = (uintptr_t)address - heddle_abi_1.data_base;
        *region = peer->data_size;
        if (*offset >= *region)
            return NULL;
        base = peer->data;
    }
    if (base == NULL)
        __builtin_unreachable(); /* a region with a size has an address: the caller's test of base folds away */
    return base;
}

/* Where a size is known at run time only, gcc 11 and later warn of sizes that cannot occur. */
#if defined(__GNUC__) && __GNUC__ >= 11 && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Warray-bounds"
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#pragma GCC diagnostic ignored "-Wstringop-overread"
#endif

/* Copies short data without a call or a range check: one element, 8 bytes, or 9 to 16 bytes as two moves that may
 * overlap. Returns 0, and copies nothing, for other sizes. */
HEDDLE_LOCAL int heddle_copy_short(void* to, const void* from, size_t nelems, size_t element_bytes) {
    size_t bytes = nelems * element_bytes;
    if (element_bytes > 1 && element_bytes <= 8 && nelems == 1) {
        heddle_store(to, from, element_bytes);
        return 1;
    }
    if (HEDDLE_COPIES_AS_CALLS)
        return 0;
    if (element_bytes < 8 && nelems == 8 / element_bytes) { /* bytes == 8 would also hold after an overflow */
        uint64_t word;
        memcpy(&word, from, 8);
        memcpy(to, &word, 8);
        return 1;
    }
    if (nelems > HEDDLE_SHORT_BYTES)
        return 0;
    if (bytes - 8 <= HEDDLE_SHORT_BYTES - 8) {
        uint64_t first, last;
        memcpy(&first, from, 8);
        memcpy(&last, (const char*)from + bytes - 8, 8);
        memcpy(to, &first, 8);
        memcpy((char*)to + bytes - 8, &last, 8);
        return 1;
    }
    return 0;
}

#if defined(__GNUC__) && __GNUC__ >= 11 && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

/* True when nelems elements from offset on end inside a region of `region` bytes. */
HEDDLE_LOCAL int heddle_fits(size_t region, uintptr_t offset, size_t nelems, size_t element_bytes) {
    return nelems <= (region - offset) / element_bytes;
}

/* The least number of bytes of a transfer that another thread may copy, where the program allows it: under a request,
 * and between shmemx_request_begin and _end. */
#define HEDDLE_LARGE_BYTES ((size_t)256 * 1024)

/* heddle_fits, for transfers of less than HEDDLE_LARGE_BYTES. */
HEDDLE_LOCAL int heddle_is_inline(size_t region, uintptr_t offset, size_t nelems, size_t element_bytes) {
    return nelems < HEDDLE_LARGE_BYTES / element_bytes && heddle_fits(region, offset, nelems, element_bytes);
}

/* Copies nelems elements by memcpy. nelems * element_bytes must not overflow. */
HEDDLE_LOCAL void heddle_copy_long(void* to, const void* from, size_t nelems, size_t element_bytes) {
    size_t bytes = nelems * element_bytes;
    if (HEDDLE_COPIES_AS_CALLS)
        __asm__("" : "+r"(bytes)); /* hides a constant size from the compiler, so that it calls memcpy */
    if (bytes != 0)
        memcpy(to, from, bytes);
}

/* Copies nelems elements, any number. */
HEDDLE_LOCAL void heddle_copy(void* to, const void* from, size_t nelems, size_t element_bytes) {
    if (!heddle_copy_short(to, from, nelems, element_bytes))
        heddle_copy_long(to, from, nelems, element_bytes);
}

/* The first word of the record of a put of `bytes`, at most 8, to an offset in the heap of another node's PE; the bits
 * of the value follow (docs/internals/protocol.md). */
#define HEDDLE_PUT_RECORD(offset, bytes) ((offset) | (bytes) << 54)
#define HEDDLE_PUT_RECORD_BYTES 16

/* Puts *value, of `bytes`, at most 8, to the heap of a PE on another node: a record in the calling thread's stream, of
 * that context, to that PE. is_nbi: a non-blocking put. req: the request that it joins; NULL: none. Returns the stream,
 * which heddle_tell_sender then looks at. NULL, and nothing is done, where the library must look first; it is always
 * right to leave it all to the library. pe is hidden from the compiler, so that the path on the node is compiled as if
 * there were no other. */
HEDDLE_LOCAL struct heddle_stream* heddle_put_far(shmem_ctx_t ctx, const void* dest, const void* value, size_t bytes,
                                                  int pe, int is_nbi, struct heddle_request* const* req) {
    uintptr_t offset = (uintptr_t)dest;
    struct heddle_stream* stream;
    uint64_t at, bits = 0;
    heddle_u64* record;
    __asm__("" : "+r"(pe));
    offset -= heddle_streams_2.heap_base;
    /* Relaxed: who fences or destroys a context tells other threads of it by the program's own synchronization. */
    if (heddle_streams_2.ctx != ctx || (unsigned)pe >= heddle_streams_2.n_pes ||
        offset >= heddle_streams_2.heap_words ||
        heddle_streams_2.epoch != __atomic_load_n(&heddle_streams_epoch_1, __ATOMIC_RELAXED))
        return NULL;
    stream = __atomic_load_n((is_nbi ? heddle_streams_2.nbi_to : heddle_streams_2.to) + pe, __ATOMIC_RELAXED);
    if (stream == NULL)
        return NULL;
    if (req != NULL && __atomic_load_n(&stream->request, __ATOMIC_RELAXED) != *req)
        return NULL;
    at = stream->published;
    if (HEDDLE_UNLIKELY(at + HEDDLE_PUT_RECORD_BYTES >= stream->simple_end))
        return NULL;
    memcpy(&bits, value, bytes <= 8 ? bytes : 8);
    record = (heddle_u64*)(stream->base + at);
    /* Two stores, by no vector register. */
    __atomic_store_n(record, HEDDLE_PUT_RECORD(offset, bytes), __ATOMIC_RELAXED);
    __atomic_store_n(record + 1, bits, __ATOMIC_RELAXED);
    __atomic_store_n(&stream->published, at + HEDDLE_PUT_RECORD_BYTES, __ATOMIC_RELEASE); /* to SendRing::published */
    /* Relaxed: a thread that waits for this put synchronizes with this one through the program. */
    if (req != NULL)
        __atomic_store_n(stream->claimed, at + HEDDLE_PUT_RECORD_BYTES, __ATOMIC_RELAXED);
    return stream;
}

/* Behind heddle_put_far: tells the sender of an idle stream, which nobody else looks at. */
HEDDLE_LOCAL void heddle_tell_sender(struct heddle_stream* stream) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* the light side of Channel::finish_idle */
    if (HEDDLE_UNLIKELY(__atomic_load_n(&stream->idle, __ATOMIC_RELAXED) != 0))
        heddle_slow_published(stream);
}

/* heddle_put_far of one element of 4 or 8 bytes, or of several that are 8 bytes together. NULL for others. Where the
 * compiler does not know the number of elements, one comparison finds what is most common: a word of 8 bytes, one int. */
HEDDLE_LOCAL struct heddle_stream* heddle_put_word_far(shmem_ctx_t ctx, const void* dest, const void* source,
                                                       size_t nelems, size_t element_bytes, int pe, int is_nbi,
                                                       struct heddle_request* const* req) {
    size_t bytes = element_bytes == 4 ? 4 : 8;
    if (__builtin_constant_p(nelems) && element_bytes == 4 && nelems == 2)
        bytes = 8;
    if (element_bytes > 8 || nelems != bytes / element_bytes)
        return NULL;
    return heddle_put_far(ctx, dest, source, bytes, pe, is_nbi, req);
}

/* The body of shmem_p: stores *value, of `bytes`, in dest on pe. function: the name that the program called. */
HEDDLE_LOCAL void heddle_p(const char* function, shmem_ctx_t ctx, void* dest, const void* value, size_t bytes, int pe) {
    uintptr_t offset;
    size_t region;
    char* base = heddle_on_node(ctx, dest, pe, &offset, &region);
    if (HEDDLE_LIKELY(base != NULL)) {
        heddle_store(base + offset, value, bytes);
    } else if (bytes <= 8) { /* by value, so that the value stays in its register on the hot path */
        uint64_t bits = 0;
        struct heddle_stream* stream;
        memcpy(&bits, value, bytes <= 8 ? bytes : 8);
        stream = heddle_put_far(ctx, dest, &bits, bytes, pe, 0, NULL);
        if (HEDDLE_LIKELY(stream != NULL))
            heddle_tell_sender(stream);
        else
            heddle_slow_p(dest, bits, pe, bytes, function, ctx);
    } else {
        heddle_slow_put(dest, value, 1, pe, bytes, function, ctx);
    }
}

/* The body of shmem_g: loads source on pe, of `bytes`, into *value. */
HEDDLE_LOCAL void heddle_g(const char* function, shmem_ctx_t ctx, void* value, const void* source, size_t bytes,
                           int pe) {
    uintptr_t offset;
    size_t region;
    const char* base = heddle_on_node(ctx, source, pe, &offset, &region);
    if (HEDDLE_LIKELY(base != NULL)) {
        heddle_load(value, base + offset, bytes);
    } else if (bytes <= 8) {
        uint64_t bits = heddle_slow_g(source, pe, bytes, function, ctx);
        memcpy(value, &bits, bytes <= 8 ? bytes : 8);
    } else {
        heddle_slow_get(value, source, 1, pe, bytes, function, ctx);
    }
}

/* The body of shmem_put: copies nelems elements of source to dest on pe; complete at return. */
HEDDLE_LOCAL void heddle_put(const char* function, shmem_ctx_t ctx, void* dest, const void* source, size_t nelems,
                             size_t element_bytes, int pe) {
    uintptr_t offset;
    size_t region;
    char* base = heddle_on_node(ctx, dest, pe, &offset, &region);
    if (HEDDLE_LIKELY(base != NULL)) {
        if (heddle_copy_short(base + offset, source, nelems, element_bytes))
            return;
        if (HEDDLE_LIKELY(heddle_fits(region, offset, nelems, element_bytes))) {
            heddle_copy_long(base + offset, source, nelems, element_bytes);
            return;
        }
    } else {
        struct heddle_stream* stream = heddle_put_word_far(ctx, dest, source, nelems, element_bytes, pe, 0, NULL);
        if (HEDDLE_LIKELY(stream != NULL)) {
            heddle_tell_sender(stream);
            return;
        }
    }
    heddle_slow_put(dest, source, nelems, pe, element_bytes, function, ctx);
}

/* The body of shmem_get: copies nelems elements of source on pe to dest; complete at return. */
HEDDLE_LOCAL void heddle_get(const char* function, shmem_ctx_t ctx, void* dest, const void* source, size_t nelems,
                             size_t element_bytes, int pe) {
    uintptr_t offset;
    size_t region;
    const char* base = heddle_on_node(ctx, source, pe, &offset, &region);
    if (HEDDLE_LIKELY(base != NULL)) {
        if (heddle_copy_short(dest, base + offset, nelems, element_bytes))
            return;
        if (HEDDLE_LIKELY(heddle_fits(region, offset, nelems, element_bytes))) {
            heddle_copy_long(dest, base + offset, nelems, element_bytes);
            return;
        }
    }
    heddle_slow_get(dest, source, nelems, pe, element_bytes, function, ctx);
}

/* Copies nelems elements of source to dest on pe when they are fewer than HEDDLE_LARGE_BYTES and loads and stores reach
 * dest. Otherwise copies nothing and returns 0. */
HEDDLE_LOCAL int heddle_put_inline(shmem_ctx_t ctx, void* dest, const void* source, size_t nelems, size_t element_bytes,
                                   int pe) {
    uintptr_t offset;
    size_t region;
    char* base = heddle_on_node(ctx, dest, pe, &offset, &region);
    if (HEDDLE_UNLIKELY(base == NULL))
        return 0;
    if (heddle_copy_short(base + offset, source, nelems, element_bytes))
        return 1;
    if (HEDDLE_UNLIKELY(!heddle_is_inline(region, offset, nelems, element_bytes)))
        return 0;
    heddle_copy_long(base + offset, source, nelems, element_bytes);
    return 1;
}

/* Copies nelems elements of source on pe to dest when they are fewer than HEDDLE_LARGE_BYTES and loads and stores reach
 * source. Otherwise copies nothing and returns 0. */
HEDDLE_LOCAL int heddle_get_inline(shmem_ctx_t ctx, void* dest, const void* source, size_t nelems, size_t element_bytes,
                                   int pe) {
    uintptr_t offset;
    size_t region;
    const char* base = heddle_on_node(ctx, source, pe, &offset, &region);
    if (HEDDLE_UNLIKELY(base == NULL))
        return 0;
    if (heddle_copy_short(dest, base + offset, nelems, element_bytes))
        return 1;
    if (HEDDLE_UNLIKELY(!heddle_is_inline(region, offset, nelems, element_bytes)))
        return 0;
    heddle_copy_long(dest, base + offset, nelems, element_bytes);
    return 1;
}

/* The body of shmem_put_nbi. It differs from heddle_put on the slow path alone, which may return before the transfer is
 * complete: to other nodes, and for transfers of HEDDLE_LARGE_BYTES between shmemx_request_begin and _end. */
HEDDLE_LOCAL void heddle_put_nbi(const char* function, shmem_ctx_t ctx, void* dest, const void* source, size_t nelems,
                                 size_t element_bytes, int pe) {
    struct heddle_stream* stream;
    if (heddle_put_inline(ctx, dest, source, nelems, element_bytes, pe))
        return;
    stream = heddle_put_word_far(ctx, dest, source, nelems, element_bytes, pe, 1, NULL);
    if (HEDDLE_LIKELY(stream != NULL))
        heddle_tell_sender(stream);
    else
        heddle_slow_put_nbi(dest, source, nelems, pe, element_bytes, function, ctx);
}

/* The body of shmem_get_nbi; it differs from heddle_get as heddle_put_nbi does from heddle_put. */
HEDDLE_LOCAL void heddle_get_nbi(const char* function, shmem_ctx_t ctx, void* dest, const void* source, size_t nelems,
                                 size_t element_bytes, int pe) {
    if (!heddle_get_inline(ctx, dest, source, nelems, element_bytes, pe))
        heddle_slow_get_nbi(dest, source, nelems, pe, element_bytes, function, ctx);
}

/* Defines NAME: one atomic on a WORD that this CPU reaches. Returns the old value, or 0 for HEDDLE_AMO_SET. A fetch is
 * a full fence and a load: earlier stores come first, as with the locked instructions of the other operations.
 * shmem_fence then need not be a full fence (docs/internals/memory-model.md, docs/decisions/0003). */
#define HEDDLE_AMO_ON(NAME, WORD)                                                                              \
    HEDDLE_LOCAL uint64_t NAME(enum heddle_amo_op op, WORD* datum, WORD operand, WORD compare) {               \
        switch (op) {                                                                                          \
            case HEDDLE_AMO_FETCH:                                                                             \
                HEDDLE_FENCE(__ATOMIC_SEQ_CST);                                                                \
                return __atomic_load_n(datum, HEDDLE_LOAD_ORDER);                                              \
            case HEDDLE_AMO_SET:                                                                               \
                __atomic_store_n(datum, operand, HEDDLE_STORE_ORDER);                                          \
                return 0;                                                                                      \
            case HEDDLE_AMO_SWAP:                                                                              \
                return __atomic_exchange_n(datum, operand, HEDDLE_AMO_ORDER);                                  \
            case HEDDLE_AMO_COMPARE_SWAP:                                                                      \
                __atomic_compare_exchange_n(datum, &compare, operand, 0, HEDDLE_AMO_ORDER, HEDDLE_LOAD_ORDER); \
                return compare;                                                                                \
            case HEDDLE_AMO_ADD:                                                                               \
                return __atomic_fetch_add(datum, operand, HEDDLE_AMO_ORDER);                                   \
            case HEDDLE_AMO_AND:                                                                               \
                return __atomic_fetch_and(datum, operand, HEDDLE_AMO_ORDER);                                   \
            case HEDDLE_AMO_OR:                                                                                \
                return __atomic_fetch_or(datum, operand, HEDDLE_AMO_ORDER);                                    \
            case HEDDLE_AMO_XOR:                                                                               \
                return __atomic_fetch_xor(datum, operand, HEDDLE_AMO_ORDER);                                   \
            case HEDDLE_AMO_UNFETCHED:                                                                         \
                break;                                                                                         \
        }                                                                                                      \
        return 0;                                                                                              \
    }
HEDDLE_AMO_ON(heddle_amo_on_u32, heddle_u32)
HEDDLE_AMO_ON(heddle_amo_on_u64, heddle_u64)

/* One atomic on an element of `bytes` (4 or 8) that this CPU reaches. Returns the old value, or 0 for HEDDLE_AMO_SET.
 * The switches fold away where `op` and `bytes` are constants; the slow path calls this body, too. */
HEDDLE_LOCAL uint64_t heddle_amo_on(enum heddle_amo_op op, void* address, uint64_t operand, uint64_t compare,
                                    size_t bytes) {
    return bytes == 8 ? heddle_amo_on_u64(op, (heddle_u64*)address, operand, compare)
                      : heddle_amo_on_u32(op, (heddle_u32*)address, (uint32_t)operand, (uint32_t)compare);
}

/* The operand *value, of `bytes`, as a number; 0 where value is NULL. */
HEDDLE_LOCAL uint64_t heddle_bits(const void* value, size_t bytes) {
    uint64_t bits = 0;
    if (value)
        memcpy(&bits, value, bytes);
    return bits;
}

/* The body of the blocking atomics on dest on pe, of `bytes` (4 or 8). fetch: receives the old value, or NULL. operand,
 * compare: NULL where op has none. */
HEDDLE_LOCAL void heddle_amo(const char* function, shmem_ctx_t ctx, enum heddle_amo_op op, void* fetch,
                             const void* dest, const void* operand, const void* compare, size_t bytes, int pe) {
    uintptr_t offset;
    size_t region;
    uint64_t value = heddle_bits(operand, bytes), expected = heddle_bits(compare, bytes), old;
    char* base = heddle_on_node(ctx, dest, pe, &offset, &region);
    if (HEDDLE_LIKELY(base != NULL))
        old = heddle_amo_on(op, base + offset, value, expected, bytes);
    else
        old = heddle_slow_amo(dest, value, pe, expected, bytes,
                              fetch ? op : (enum heddle_amo_op)(op | HEDDLE_AMO_UNFETCHED), function, ctx);
    if (fetch)
        memcpy(fetch, &old, bytes); /* the low bytes: both supported architectures are little-endian */
}

/* The body of the nbi atomics: heddle_amo, but on the slow path *fetch may receive the old value later, by a quiet. */
HEDDLE_LOCAL void heddle_amo_nbi(const char* function, shmem_ctx_t ctx, enum heddle_amo_op op, void* fetch,
                                 const void* dest, const void* operand, const void* compare, size_t bytes, int pe) {
    uintptr_t offset;
    size_t region;
    uint64_t value = heddle_bits(operand, bytes), expected = heddle_bits(compare, bytes), old;
    char* base = heddle_on_node(ctx, dest, pe, &offset, &region);
    if (HEDDLE_LIKELY(base != NULL)) {
        old = heddle_amo_on(op, base + offset, value, expected, bytes);
        if (fetch)
            memcpy(fetch, &old, bytes);
    } else {
        heddle_slow_amo_nbi(fetch, dest, value, pe, expected, bytes, op, function, ctx);
    }
}

#ifdef __cplusplus
}
#endif

#endif
