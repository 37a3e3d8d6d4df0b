#include "operations/rma.h"

#include "base/settings.h"
#include "operations/at_once.h"

namespace heddle::operations {

namespace {

// The common begin of put and get; false when there is nothing to copy. *pe becomes the PE of the world.
bool prepare(const char* function, shmem_ctx_t ctx, size_t nelems, size_t element_bytes, int* pe,
             const char* local_name, const void* local, size_t* bytes) {
    *pe = require_target(function, ctx, *pe);
    *bytes = extent(function, nelems, element_bytes);
    if (*bytes == 0) {
        called_from = nullptr;  // no observer is told
        return false;
    }
    require_pointer(function, local_name, local);
    return true;
}

}  // namespace

void check_overlap(const char* function, const void* to, const void* from, size_t bytes) {
    if (base::settings.check)
        require_disjoint(function, to, from, bytes);
}

void slow_put(const char* function, shmem_ctx_t ctx, void* dest, const void* source, size_t nelems,
              size_t element_bytes, int ctx_pe, bool blocking) {
    size_t bytes;
    int pe = ctx_pe;
    if (!prepare(function, ctx, nelems, element_bytes, &pe, "source", source, &bytes))
        return;
    char* to = require_symmetric(function, "dest", dest, bytes, pe);
    if (to)
        check_overlap(function, to, source, bytes);
    HEDDLE_OBSERVE(.call = {function}, .ctx = ctx, .pe = ctx_pe, .world_pe = pe, .dest = dest, .source = source,
                   .nelems = nelems, .element_bytes = element_bytes, .blocking = blocking);
    if (!to)
        return remote_put({.call = {function}, .ctx = ctx, .blocking = blocking}, dest, source, bytes, pe);
    keep_order(ctx);
    heddle_copy(to, source, nelems, element_bytes);
}

void put(const char* function, shmem_ctx_t ctx, void* dest, const void* source, size_t nelems, size_t element_bytes,
         int pe) {
    if (!put_at_once(function, ctx, dest, source, nelems, element_bytes, pe))
        slow_put(function, ctx, dest, source, nelems, element_bytes, pe);
}

void slow_get(const char* function, shmem_ctx_t ctx, void* dest, const void* source, size_t nelems,
              size_t element_bytes, int ctx_pe, bool blocking) {
    size_t bytes;
    int pe = ctx_pe;
    if (!prepare(function, ctx, nelems, element_bytes, &pe, "dest", dest, &bytes))
        return;
    const char* from = require_symmetric(function, "source", source, bytes, pe);
    if (from)
        check_overlap(function, dest, from, bytes);
    HEDDLE_OBSERVE(.kind = Operation::Kind::kGet, .call = {function}, .ctx = ctx, .pe = ctx_pe, .world_pe = pe,
                   .dest = dest, .source = source, .nelems = nelems, .element_bytes = element_bytes,
                   .blocking = blocking);
    if (!from)
        return remote_get({.call = {function}, .ctx = ctx, .blocking = blocking}, dest, source, bytes, pe);
    heddle_copy(dest, from, nelems, element_bytes);
}

void put_blocks_far(const char* function, shmem_ctx_t ctx, char* dest, const char* source, size_t dest_step,
                    size_t source_step, size_t block_bytes, size_t nblocks, int pe) {
    const IssueParams issue = {.call = {function}, .ctx = ctx};
    for (size_t i = 0; i < nblocks; ++i)
        remote_put(issue, dest + i * dest_step, source + i * source_step, block_bytes, pe);
    remote_put_done(issue, pe);
}

void get_blocks_far(const char* function, shmem_ctx_t ctx, char* dest, const char* source, size_t dest_step,
                    size_t source_step, size_t block_bytes, size_t nblocks, int pe) {
    IssueParams issue = {.call = {function}, .ctx = ctx};
    for (size_t i = 0; i < nblocks; ++i) {
        issue.blocking = i + 1 == nblocks;  // returns arrive in order
        remote_get(issue, dest + i * dest_step, source + i * source_step, block_bytes, pe);
    }
}

}  // namespace heddle::operations
