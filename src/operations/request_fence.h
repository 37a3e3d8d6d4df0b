// The fence of a request, to other nodes (docs/decisions/0064). The target keeps the order of the records of one stream
// set. So a fence waits for nobody where all that is under way for the request is in one stream set of its caller: who
// posts through another one afterwards waits. Threads: those that post to the request.
#pragma once

#include "context/request.h"

namespace heddle::operations {

// Operations posted to the request after this are delivered to each PE after those posted before it. Waits where the
// request is SHARED, and where operations are under way on several contexts, on a SERIALIZED one, or of other threads.
void remote_request_fence(const base::Call& call, context::Request& request);

// Ahead of an operation under *req by other ways than records of a stream set: waits for what a fence has left under
// way.
void await_request_fence(const base::Call& call, shmemx_request_t req);
// Ahead of an operation under *req that the stream takes: waits only where the target would not order it behind.
void await_request_fence_slowly(const base::Call& call, shmemx_request_t req, const fabric::Stream& stream);
inline void await_request_fence(const base::Call& call, shmemx_request_t req, const fabric::Stream& stream) {
    if (!context::is_claimed_by(stream, req) && req != SHMEMX_REQUEST_NULL && req != HEDDLE_REQUEST_COMPLETE)
        await_request_fence_slowly(call, req, stream);
}

}  // namespace heddle::operations
