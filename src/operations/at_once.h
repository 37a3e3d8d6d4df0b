// Short operations on PEs of other nodes in the common case: the context and the PE are cached, as stream_at_once of
// operations/remote.h has them, and the stream claims for the request, if there is one. Each returns false where it has
// done nothing: the caller then takes the general path, which checks, waits and complains. Threads: any.
#pragma once

#include "context/request.h"
#include "operations/remote.h"

namespace heddle::operations {

// req: null where the operation joins no request.
inline fabric::Stream* stream_at_once(shmem_ctx_t ctx, int pe, const shmemx_request_t* req) {
    fabric::Stream* const stream = stream_at_once(ctx, pe);
    return stream && req && !context::is_claimed_by(*stream, *req) ? nullptr : stream;
}

// Whether data of so many bytes at the address lies in one region. *to: as find_region.
inline bool is_symmetric(const void* address, size_t bytes, fabric::Address* to) {
    const memory::SymmetricRegion& region = find_region(address, to);
    return to->offset < region.bytes && bytes <= region.bytes - to->offset;
}

inline bool put_at_once(const char* function, shmem_ctx_t ctx, void* dest, const void* source, size_t nelems,
                        size_t element_bytes, int pe, const shmemx_request_t* req = nullptr) {
    const size_t bytes = nelems * element_bytes;  // no overflow passes the next line, because nelems is bounded
    if (nelems > fabric::record::kMaxSmallPut || bytes - 1 >= fabric::record::kMaxSmallPut || !source)
        return false;
    fabric::Stream* const stream = stream_at_once(ctx, pe, req);
    fabric::Address to;
    if (!stream || !is_symmetric(dest, bytes, &to))  // without a stream there may be no memory yet
        return false;
    stream->publish(
        fabric::record::put(stream->reserve(function, fabric::record::put_bytes(bytes)), to, source, bytes));
    if (req)
        context::claim_again(*stream, false);
    return true;
}

// A get that may return before the data is here.
inline bool get_at_once(const char* function, shmem_ctx_t ctx, void* dest, const void* source, size_t nelems,
                        size_t element_bytes, int pe, const shmemx_request_t* req) {
    const size_t bytes = nelems * element_bytes;
    if (nelems > fabric::record::kMaxSmallPut || bytes - 1 >= fabric::record::kMaxSmallPut || !dest)
        return false;
    fabric::Stream* const stream = stream_at_once(ctx, pe, req);
    fabric::Address from;
    if (!stream || !is_symmetric(source, bytes, &from) || !stream->expect_return_at_once(dest, bytes))
        return false;
    stream->publish(fabric::record::get(stream->reserve(function, fabric::record::kMaxShort), from, bytes));
    if (req)
        context::claim_again(*stream);
    return true;
}

// fetch: receives the old value, which may come later; null: not wanted.
inline bool amo_at_once(const char* function, shmem_ctx_t ctx, heddle_amo_op op, void* fetch, const void* dest,
                        uint64_t operand, uint64_t compare, size_t bytes, int pe, const shmemx_request_t* req) {
    fabric::Stream* const stream = stream_at_once(ctx, pe, req);
    fabric::Address to;
    if (!stream || reinterpret_cast<uintptr_t>(dest) % bytes != 0 || !is_symmetric(dest, bytes, &to) ||
        (fetch && !stream->expect_return_at_once(fetch, bytes)))
        return false;
    char* const at = stream->reserve(function, fabric::record::kMaxShort);
    stream->publish(fabric::record::atomic(at, to, op, operand, compare, bytes, fetch != nullptr));
    if (req)
        context::claim_again(*stream, fetch != nullptr);
    return true;
}

}  // namespace heddle::operations
