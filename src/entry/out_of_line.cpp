// The slow path as inlined code of programs calls it (heddle/abi.h): a look whether operations are called out of line
// (operations/out_of_line.h), and a jump to the library's own slow path (slow_path.cpp). That so sees the program's
// return address. Inlined code of the library calls its own slow path at once (src/CMakeLists.txt).
#define HEDDLE_COLD  // as in slow_path.cpp
#include "operations/out_of_line.h"

#undef heddle_slow_put
#undef heddle_slow_get
#undef heddle_slow_p
#undef heddle_slow_g
#undef heddle_slow_amo
#undef heddle_slow_put_nbi
#undef heddle_slow_get_nbi
#undef heddle_slow_amo_nbi
#undef heddle_slow_put_nbe
#undef heddle_slow_get_nbe
#undef heddle_slow_amo_nbe

namespace operations = heddle::operations;

namespace {

// What an operation on single values returns, where it was called out of line.
struct Called {
    bool is_called;
    uint64_t result;
};

// Both calls are apart, so that nothing keeps their callers from ending in a jump.
[[gnu::noinline, gnu::cold]] bool call_transfer(const void* caller, const char* function, shmem_ctx_t ctx, void* dest,
                                                const void* source, size_t nelems, int pe,
                                                shmemx_request_t* req = nullptr) {
    // value, result: of shmem_p and shmem_g, where the value is longer than a word
    return operations::call_out_of_line(function,
                                        {.ctx = ctx,
                                         .dest = dest,
                                         .source = source,
                                         .nelems = nelems,
                                         .pe = pe,
                                         .value = source,
                                         .req = req,
                                         .result = dest},
                                        caller);
}

[[gnu::noinline, gnu::cold]] Called call_value(const void* caller, const char* function, shmem_ctx_t ctx,
                                               const void* there, uint64_t operand, uint64_t compare, int pe,
                                               void* fetch = nullptr, shmemx_request_t* req = nullptr) {
    Called called = {false, 0};
    called.is_called = operations::call_out_of_line(function,
                                                    {.ctx = ctx,
                                                     .dest = const_cast<void*>(there),
                                                     .source = there,
                                                     .pe = pe,
                                                     .value = &operand,
                                                     .cond = &compare,
                                                     .fetch = fetch,
                                                     .req = req,
                                                     .result = &called.result},
                                                    caller);
    return called;
}

}  // namespace

// True in the rare case: operations are called out of line. And the place of the program's call.
#define HEDDLE_IS_OUT_OF_LINE __builtin_expect(operations::out_of_line != nullptr, 0)
#define HEDDLE_CALLER __builtin_return_address(0)

#pragma GCC visibility push(default)
extern "C" {

extern __typeof(heddle_own_put) heddle_slow_put;
extern __typeof(heddle_own_get) heddle_slow_get;
extern __typeof(heddle_own_p) heddle_slow_p;
extern __typeof(heddle_own_g) heddle_slow_g;
extern __typeof(heddle_own_amo) heddle_slow_amo;
extern __typeof(heddle_own_put_nbi) heddle_slow_put_nbi;
extern __typeof(heddle_own_get_nbi) heddle_slow_get_nbi;
extern __typeof(heddle_own_amo_nbi) heddle_slow_amo_nbi;
extern __typeof(heddle_own_put_nbe) heddle_slow_put_nbe;
extern __typeof(heddle_own_get_nbe) heddle_slow_get_nbe;
extern __typeof(heddle_own_amo_nbe) heddle_slow_amo_nbe;

void heddle_slow_put(void* dest, const void* source, size_t nelems, int pe, size_t element_bytes, const char* function,
                     shmem_ctx_t ctx) {
    if (HEDDLE_IS_OUT_OF_LINE && call_transfer(HEDDLE_CALLER, function, ctx, dest, source, nelems, pe))
        return;
    heddle_own_put(dest, source, nelems, pe, element_bytes, function, ctx);
}

void heddle_slow_get(void* dest, const void* source, size_t nelems, int pe, size_t element_bytes, const char* function,
                     shmem_ctx_t ctx) {
    if (HEDDLE_IS_OUT_OF_LINE && call_transfer(HEDDLE_CALLER, function, ctx, dest, source, nelems, pe))
        return;
    heddle_own_get(dest, source, nelems, pe, element_bytes, function, ctx);
}

void heddle_slow_p(void* dest, uint64_t bits, int pe, size_t bytes, const char* function, shmem_ctx_t ctx) {
    if (HEDDLE_IS_OUT_OF_LINE && call_value(HEDDLE_CALLER, function, ctx, dest, bits, 0, pe).is_called)
        return;
    heddle_own_p(dest, bits, pe, bytes, function, ctx);
}

uint64_t heddle_slow_g(const void* source, int pe, size_t bytes, const char* function, shmem_ctx_t ctx) {
    if (HEDDLE_IS_OUT_OF_LINE)
        if (const Called called = call_value(HEDDLE_CALLER, function, ctx, source, 0, 0, pe); called.is_called)
            return called.result;
    return heddle_own_g(source, pe, bytes, function, ctx);
}

uint64_t heddle_slow_amo(const void* dest, uint64_t operand, int pe, uint64_t compare, size_t bytes,
                         enum heddle_amo_op op, const char* function, shmem_ctx_t ctx) {
    if (HEDDLE_IS_OUT_OF_LINE)
        if (const Called called = call_value(HEDDLE_CALLER, function, ctx, dest, operand, compare, pe);
            called.is_called)
            return called.result;
    return heddle_own_amo(dest, operand, pe, compare, bytes, op, function, ctx);
}

void heddle_slow_put_nbi(void* dest, const void* source, size_t nelems, int pe, size_t element_bytes,
                         const char* function, shmem_ctx_t ctx) {
    if (HEDDLE_IS_OUT_OF_LINE && call_transfer(HEDDLE_CALLER, function, ctx, dest, source, nelems, pe))
        return;
    heddle_own_put_nbi(dest, source, nelems, pe, element_bytes, function, ctx);
}

void heddle_slow_get_nbi(void* dest, const void* source, size_t nelems, int pe, size_t element_bytes,
                         const char* function, shmem_ctx_t ctx) {
    if (HEDDLE_IS_OUT_OF_LINE && call_transfer(HEDDLE_CALLER, function, ctx, dest, source, nelems, pe))
        return;
    heddle_own_get_nbi(dest, source, nelems, pe, element_bytes, function, ctx);
}

void heddle_slow_amo_nbi(void* fetch, const void* dest, uint64_t operand, int pe, uint64_t compare, size_t bytes,
                         enum heddle_amo_op op, const char* function, shmem_ctx_t ctx) {
    if (HEDDLE_IS_OUT_OF_LINE && call_value(HEDDLE_CALLER, function, ctx, dest, operand, compare, pe, fetch).is_called)
        return;
    heddle_own_amo_nbi(fetch, dest, operand, pe, compare, bytes, op, function, ctx);
}

void heddle_slow_put_nbe(void* dest, const void* source, size_t nelems, int pe, size_t element_bytes,
                         const char* function, shmem_ctx_t ctx, shmemx_request_t* req) {
    if (HEDDLE_IS_OUT_OF_LINE && call_transfer(HEDDLE_CALLER, function, ctx, dest, source, nelems, pe, req))
        return;
    heddle_own_put_nbe(dest, source, nelems, pe, element_bytes, function, ctx, req);
}

void heddle_slow_get_nbe(void* dest, const void* source, size_t nelems, int pe, size_t element_bytes,
                         const char* function, shmem_ctx_t ctx, shmemx_request_t* req) {
    if (HEDDLE_IS_OUT_OF_LINE && call_transfer(HEDDLE_CALLER, function, ctx, dest, source, nelems, pe, req))
        return;
    heddle_own_get_nbe(dest, source, nelems, pe, element_bytes, function, ctx, req);
}

void heddle_slow_amo_nbe(const void* dest, uint64_t operand, int pe, uint64_t compare, size_t bytes,
                         enum heddle_amo_op op, const char* function, shmem_ctx_t ctx, shmemx_request_t* req,
                         void* fetch) {
    if (HEDDLE_IS_OUT_OF_LINE &&
        call_value(HEDDLE_CALLER, function, ctx, dest, operand, compare, pe, fetch, req).is_called)
        return;
    heddle_own_amo_nbe(dest, operand, pe, compare, bytes, op, function, ctx, req, fetch);
}

}  // extern "C"
#pragma GCC visibility pop
