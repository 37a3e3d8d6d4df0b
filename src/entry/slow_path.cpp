// The slow path of the inlined operations, one line each: heddle_own_X carries out what heddle_slow_X of heddle/abi.h
// is called for (out_of_line.cpp). And what else the public headers have of it, exported.
#define HEDDLE_COLD  // callers treat them as cold; in a job of many nodes they are called most
#include "entry/entry.h"
#include "operations/at_once.h"

namespace operations = heddle::operations;

// For an observer: where the program has called, which most operations do not hand on.
#define HEDDLE_NOTE_CALLER()                              \
    if (HEDDLE_UNLIKELY(operations::observer != nullptr)) \
    operations::called_from = __builtin_return_address(0)

namespace {

// In an observed run: where a put or a get that is counted with others like it is carried out. Otherwise null.
inline char* count_in_run(operations::Operation::Kind kind, const void* caller, shmem_ctx_t ctx, const void* there,
                          size_t nelems, size_t element_bytes, int pe) {
    if (HEDDLE_UNLIKELY(operations::observer != nullptr) && operations::observed_runs && nelems < HEDDLE_LARGE_BYTES)
        return operations::observed_runs->of(caller).count(kind, caller, ctx, there, nelems * element_bytes, pe);
    return nullptr;
}
constexpr auto kPut = operations::Operation::Kind::kPut, kGet = operations::Operation::Kind::kGet;

}  // namespace

extern "C" {

void heddle_own_put(void* dest, const void* source, size_t nelems, int pe, size_t element_bytes, const char* function,
                    shmem_ctx_t ctx) {
    if (operations::put_word_at_once(ctx, dest, source, nelems, element_bytes, pe))
        return;
    if (char* const to = count_in_run(kPut, __builtin_return_address(0), ctx, dest, nelems, element_bytes, pe))
        return heddle_copy(to, source, nelems, element_bytes);
    HEDDLE_NOTE_CALLER();
    operations::put(function, ctx, dest, source, nelems, element_bytes, pe);
}

void heddle_slow_published(heddle_stream* stream) {
    heddle::fabric::Stream::with(stream)->send_published();
}

void heddle_own_get(void* dest, const void* source, size_t nelems, int pe, size_t element_bytes, const char* function,
                    shmem_ctx_t ctx) {
    if (const char* const from =
            count_in_run(kGet, __builtin_return_address(0), ctx, source, nelems, element_bytes, pe))
        return heddle_copy(dest, from, nelems, element_bytes);
    HEDDLE_NOTE_CALLER();
    operations::slow_get(function, ctx, dest, source, nelems, element_bytes, pe);
}

void heddle_own_p(void* dest, uint64_t bits, int pe, size_t bytes, const char* function, shmem_ctx_t ctx) {
    if (bytes == sizeof bits && operations::put_word_at_once(ctx, dest, bits, pe))
        return;
    if (char* const to = count_in_run(kPut, __builtin_return_address(0), ctx, dest, 1, bytes, pe))
        return heddle_store(to, &bits, bytes);  // the low bytes: little-endian
    HEDDLE_NOTE_CALLER();
    operations::put(function, ctx, dest, &bits, 1, bytes, pe);
}

uint64_t heddle_own_g(const void* source, int pe, size_t bytes, const char* function, shmem_ctx_t ctx) {
    uint64_t bits = 0;
    if (const char* const from = count_in_run(kGet, __builtin_return_address(0), ctx, source, 1, bytes, pe)) {
        heddle_load(&bits, from, bytes);
        return bits;
    }
    HEDDLE_NOTE_CALLER();
    operations::slow_get(function, ctx, &bits, source, 1, bytes, pe);
    return bits;
}

uint64_t heddle_own_amo(const void* dest, uint64_t operand, int pe, uint64_t compare, size_t bytes,
                        enum heddle_amo_op op, const char* function, shmem_ctx_t ctx) {
    return operations::slow_amo(HEDDLE_CALL(function), ctx, op, dest, operand, compare, bytes, pe);
}

void heddle_own_amo_nbi(void* fetch, const void* dest, uint64_t operand, int pe, uint64_t compare, size_t bytes,
                        enum heddle_amo_op op, const char* function, shmem_ctx_t ctx) {
    operations::slow_amo_nbi(HEDDLE_CALL(function), ctx, op, fetch, dest, operand, compare, bytes, pe);
}

void heddle_own_put_nbi(void* dest, const void* source, size_t nelems, int pe, size_t element_bytes,
                        const char* function, shmem_ctx_t ctx) {
    if (!operations::capturing && operations::put_word_at_once(ctx, dest, source, nelems, element_bytes, pe))
        return;
    HEDDLE_NOTE_CALLER();
    operations::put_nbi(HEDDLE_CALL(function), ctx, dest, source, nelems, element_bytes, pe);
}

void heddle_own_get_nbi(void* dest, const void* source, size_t nelems, int pe, size_t element_bytes,
                        const char* function, shmem_ctx_t ctx) {
    HEDDLE_NOTE_CALLER();
    operations::get_nbi(HEDDLE_CALL(function), ctx, dest, source, nelems, element_bytes, pe);
}

void heddle_own_put_nbe(void* dest, const void* source, size_t nelems, int pe, size_t element_bytes,
                        const char* function, shmem_ctx_t ctx, shmemx_request_t* req) {
    if (!req || !operations::put_at_once(function, ctx, dest, source, nelems, element_bytes, pe, req))
        operations::issue_put(HEDDLE_CALL(function), ctx, dest, source, nelems, element_bytes, pe, req);
}

void heddle_own_get_nbe(void* dest, const void* source, size_t nelems, int pe, size_t element_bytes,
                        const char* function, shmem_ctx_t ctx, shmemx_request_t* req) {
    if (!req || !operations::get_at_once(function, ctx, dest, source, nelems, element_bytes, pe, req))
        operations::issue_get(HEDDLE_CALL(function), ctx, dest, source, nelems, element_bytes, pe, req);
}

void heddle_own_amo_nbe(const void* dest, uint64_t operand, int pe, uint64_t compare, size_t bytes,
                        enum heddle_amo_op op, const char* function, shmem_ctx_t ctx, shmemx_request_t* req,
                        void* fetch) {
    if (!req || !operations::amo_at_once(function, ctx, op, fetch, dest, operand, compare, bytes, pe, req))
        operations::issue_amo(HEDDLE_CALL(function), ctx, op, fetch, dest, operand, compare, bytes, pe, req);
}

void heddle_slow_join(shmemx_request_t* req, const char* function) {
    operations::join(HEDDLE_CALL(function), req);
}

const heddle_watched* heddle_slow_watched() {
    __atomic_store_n(&operations::program_tells_accesses, true, __ATOMIC_RELAXED);
    return &operations::watched_accesses;
}

void heddle_slow_access(const void* address, size_t bytes, heddle_access_kind kind, const void* caller,
                        heddle_recent* recent) {
    if (operations::Observer* const told = operations::find_observer())
        told->access(address, bytes, kind, caller, recent);
}

}  // extern "C"
