// Between shmemx_request_begin and _end the non-blocking operations of the calling thread join a request. The library
// joins the first put of a word to each PE. Inlined code puts those behind it as if there were no request, and the end
// joins them together (docs/decisions/0064). Threads: each has its own.
#pragma once

#include "base/call.h"
#include "context/request.h"

#include <heddle/request.h>

namespace heddle::operations {

// The request that captures this thread's operations, or null.
extern constinit thread_local shmemx_request_t* capturing;

// Ends the PE when the calls do not alternate, or differ in req.
void begin_capture(const base::Call& call, shmemx_request_t* req);
void end_capture(const base::Call& call, shmemx_request_t* req);

// This thread, which captures, has put to that PE of the context: inlined code may go on.
void capture_stream(const base::Call& call, shmem_ctx_t ctx, int pe);

// What inlined code has put joins the request, and the library sees the next put to each PE: ahead of all that looks at
// requests, and of a change of heddle_streams_2.
extern constinit thread_local context::Request* captured_by;
void settle_captured();
inline void settle_capture() {
    if (__builtin_expect(captured_by != nullptr, 0))  // there are puts of inlined code
        settle_captured();
}
// What inlined code has for non-blocking puts, where it has `to` for others (heddle_streams::nbi_to).
heddle_stream* const* captured_or(heddle_stream* const* to);

}  // namespace heddle::operations
