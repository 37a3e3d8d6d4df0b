// Put and get beyond the hot path: the slow path of the inlined functions, and the strided and blocked forms. Threads:
// any. Conditions and errors: check.h.
#pragma once

#include "base/error.h"
#include "operations/check.h"
#include "operations/observer.h"
#include "operations/remote.h"

#include <heddle/hot_path.h>
#include <cstring>

namespace heddle::operations {

// blocking: false for the _nbi forms.
void slow_put(const char* function, shmem_ctx_t ctx, void* dest, const void* source, size_t nelems,
              size_t element_bytes, int pe, bool blocking = true);
void slow_get(const char* function, shmem_ctx_t ctx, void* dest, const void* source, size_t nelems,
              size_t element_bytes, int pe, bool blocking = true);

// slow_put after a try of the common case of another node (put_at_once).
void put(const char* function, shmem_ctx_t ctx, void* dest, const void* source, size_t nelems, size_t element_bytes,
         int pe);

// In a checked run: ends the PE when [to, to + bytes) and [from, from + bytes) share a byte.
void check_overlap(const char* function, const void* to, const void* from, size_t bytes);

// The address at which this PE reaches [address, address + bytes) of pe, by the hot path's test or with all checks.
// Null when pe, a number of the context, is on another node.
inline char* reach(const char* function, shmem_ctx_t ctx, const char* argument, const void* address, size_t bytes,
                   int pe) {
    uintptr_t offset;
    size_t region;
    char* base = heddle_on_node(ctx, address, pe, &offset, &region);
    if (base && heddle_fits(region, offset, bytes, 1))
        return base + offset;
    return require_symmetric(function, argument, address, bytes, require_target(function, ctx, pe));
}

// The bytes from the first to the last of nblocks blocks of bsize elements, whose starts are `stride` elements apart.
// Ends the PE when the stride is smaller than a block, or the extent exceeds an address space.
template <size_t kBytes>
size_t blocks_extent(const char* function, const char* argument, ptrdiff_t stride, size_t bsize, size_t nblocks) {
    if (stride < 1 || static_cast<size_t>(stride) < bsize)
        base::fatal(function, "%s %td is wrong: right would be %zu or more", argument, stride, bsize);
    size_t elements;
    if (__builtin_mul_overflow(nblocks - 1, static_cast<size_t>(stride), &elements) ||
        __builtin_add_overflow(elements, bsize, &elements))
        elements = SIZE_MAX;
    return extent(function, elements, kBytes);
}

// Copies blocks within this PE's address space. kStore: `to` is a peer's memory, otherwise `from` is; single elements
// of it are accessed untorn.
template <size_t kBytes, bool kStore>
void copy_blocks(char* to, const char* from, ptrdiff_t to_stride, ptrdiff_t from_stride, size_t bsize, size_t nblocks) {
    const size_t to_step = static_cast<size_t>(to_stride) * kBytes,
                 from_step = static_cast<size_t>(from_stride) * kBytes;
    for (size_t i = 0; i < nblocks; ++i, to += to_step, from += from_step) {
        if (bsize != 1)
            memcpy(to, from, bsize * kBytes);
        else if constexpr (kStore)
            heddle_store(to, from, kBytes);
        else
            heddle_load(to, from, kBytes);
    }
}

// The blocked put and get for a PE of the world on another node; steps and sizes in bytes.
void put_blocks_far(const char* function, shmem_ctx_t ctx, char* dest, const char* source, size_t dest_step,
                    size_t source_step, size_t block_bytes, size_t nblocks, int pe);
void get_blocks_far(const char* function, shmem_ctx_t ctx, char* dest, const char* source, size_t dest_step,
                    size_t source_step, size_t block_bytes, size_t nblocks, int pe);

template <size_t kBytes>
void put_blocks(const char* function, shmem_ctx_t ctx, void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst,
                size_t bsize, size_t nblocks, int pe) {
    if (bsize == 0 || nblocks == 0) {
        require_target(function, ctx, pe);
        return;
    }
    const size_t bytes = blocks_extent<kBytes>(function, "dst", dst, bsize, nblocks);
    blocks_extent<kBytes>(function, "sst", sst, bsize, nblocks);
    char* to = reach(function, ctx, "dest", dest, bytes, pe);
    require_pointer(function, "source", source);
    HEDDLE_OBSERVE(.call = {function}, .ctx = ctx, .pe = pe, .world_pe = require_target(function, ctx, pe),
                   .dest = dest, .source = source, .nelems = bsize, .element_bytes = kBytes, .nblocks = nblocks,
                   .dest_step = static_cast<size_t>(dst) * kBytes, .source_step = static_cast<size_t>(sst) * kBytes);
    if (!to) {
        put_blocks_far(function, ctx, static_cast<char*>(dest), static_cast<const char*>(source),
                       static_cast<size_t>(dst) * kBytes, static_cast<size_t>(sst) * kBytes, bsize * kBytes, nblocks,
                       require_target(function, ctx, pe));
        return;
    }
    keep_order(ctx);
    copy_blocks<kBytes, true>(to, static_cast<const char*>(source), dst, sst, bsize, nblocks);
}

template <size_t kBytes>
void get_blocks(const char* function, shmem_ctx_t ctx, void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst,
                size_t bsize, size_t nblocks, int pe) {
    if (bsize == 0 || nblocks == 0) {
        require_target(function, ctx, pe);
        return;
    }
    const size_t bytes = blocks_extent<kBytes>(function, "sst", sst, bsize, nblocks);
    blocks_extent<kBytes>(function, "dst", dst, bsize, nblocks);
    const char* from = reach(function, ctx, "source", source, bytes, pe);
    require_pointer(function, "dest", dest);
    HEDDLE_OBSERVE(.kind = Operation::Kind::kGet, .call = {function}, .ctx = ctx, .pe = pe,
                   .world_pe = require_target(function, ctx, pe), .dest = dest, .source = source, .nelems = bsize,
                   .element_bytes = kBytes, .nblocks = nblocks, .dest_step = static_cast<size_t>(dst) * kBytes,
                   .source_step = static_cast<size_t>(sst) * kBytes);
    if (!from) {
        get_blocks_far(function, ctx, static_cast<char*>(dest), static_cast<const char*>(source),
                       static_cast<size_t>(dst) * kBytes, static_cast<size_t>(sst) * kBytes, bsize * kBytes, nblocks,
                       require_target(function, ctx, pe));
        return;
    }
    copy_blocks<kBytes, false>(static_cast<char*>(dest), from, dst, sst, bsize, nblocks);
}

}  // namespace heddle::operations
