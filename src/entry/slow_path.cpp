// The exported slow path of the inlined operations (heddle/abi.h), one line each.
#include "entry/entry.h"

namespace operations = heddle::operations;

extern "C" {

void heddle_slow_put(const char* function, shmem_ctx_t ctx, void* dest, const void* source, size_t nelems,
                     size_t element_bytes, int pe) {
    operations::slow_put(function, ctx, dest, source, nelems, element_bytes, pe);
}

void heddle_slow_get(const char* function, shmem_ctx_t ctx, void* dest, const void* source, size_t nelems,
                     size_t element_bytes, int pe) {
    operations::slow_get(function, ctx, dest, source, nelems, element_bytes, pe);
}

void heddle_slow_p(const char* function, shmem_ctx_t ctx, void* dest, uint64_t bits, size_t bytes, int pe) {
    operations::slow_put(function, ctx, dest, &bits, 1, bytes, pe);  // the low bytes: little-endian
}

uint64_t heddle_slow_g(const char* function, shmem_ctx_t ctx, const void* source, size_t bytes, int pe) {
    uint64_t bits = 0;
    operations::slow_get(function, ctx, &bits, source, 1, bytes, pe);
    return bits;
}

uint64_t heddle_slow_amo(const char* function, shmem_ctx_t ctx, enum heddle_amo_op op, const void* dest,
                         uint64_t operand, uint64_t compare, size_t bytes, int pe) {
    return operations::slow_amo(function, ctx, op, dest, operand, compare, bytes, pe);
}

}  // extern "C"
