#include "operations/capture.h"

#include "base/error.h"
#include "context/request.h"
#include "fabric/network.h"
#include "memory/symmetric.h"
#include "operations/transfer.h"
#include "os/thread_exit.h"

#include <cstdlib>

namespace heddle::operations {

constinit thread_local shmemx_request_t* capturing = nullptr;
constinit thread_local fabric::Stream* captured_streams = nullptr;

namespace {

thread_local base::Call capturing_since;                         // the call of shmemx_request_begin
constinit thread_local context::Request* captured_by = nullptr;  // where captured_streams is not null
// By PE: those of captured_streams, which are of heddle_streams_1; null: the library looks first.
constinit thread_local heddle_stream** captured_to = nullptr;
constinit thread_local int captured_pes = 0;

void free_table() {
    free(captured_to);
    captured_to = nullptr;
    captured_pes = 0;
}

// The table of this thread, empty.
heddle_stream* const* table() {
    const int n_pes = memory::symmetric->n_pes;
    if (captured_pes < n_pes) {
        free_table();
        captured_to = static_cast<heddle_stream**>(calloc(static_cast<size_t>(n_pes), sizeof *captured_to));
        if (!captured_to)
            base::fatal("network", "no memory for the streams of a request");
        captured_pes = n_pes;
        os::ThreadExit<free_table>::ask();
    }
    return captured_to;
}

}  // namespace

void begin_capture(const base::Call& call, shmemx_request_t* req) {
    if (capturing)
        base::fatal(call.function,
                    "in %s this thread's operations join request %p already, since %s: right would be "
                    "shmemx_request_end before",
                    base::describe(call).data(), static_cast<void*>(capturing), base::describe(capturing_since).data());
    join(call, req);
    capturing = req;
    capturing_since = call;
    if (fabric::network)
        heddle_streams_1.nbi_to = table();
}

void end_capture(const base::Call& call, shmemx_request_t* req) {
    if (!capturing)
        base::fatal(call.function,
                    "this thread's operations join no request: right would be shmemx_request_begin "
                    "before");
    if (capturing != req)
        base::fatal(call.function, "req is %p in %s, but was %p in %s: right would be the same",
                    static_cast<void*>(req), base::describe(call).data(), static_cast<void*>(capturing),
                    base::describe(capturing_since).data());
    settle_capture();
    capturing = nullptr;
    heddle_streams_1.nbi_to = heddle_streams_1.to;
}

void capture_stream(const base::Call& call, shmem_ctx_t ctx, int pe) {
    fabric::Stream* const stream = stream_at_once(heddle_streams_1, ctx, pe);
    // Of several rails the next message may take another one.
    if (!stream || stream->rails || captured_to[pe] || !context::is_claimed_by(*stream, *capturing))
        return;
    if (!captured_streams) {
        captured_by = context::find_request(call, *capturing);
        // Relaxed: who waits for what inlined code puts from here on synchronizes through the program.
        captured_by->captures.fetch_add(1, std::memory_order_relaxed);
        captured_by->holds.fetch_add(1, std::memory_order_relaxed);
    }
    captured_to[pe] = stream->head();
    stream->next_captured = captured_streams;
    captured_streams = stream;
}

void settle_captured() {
    // Another thread may have waited for it, with all that was put before. What came behind joins what *capturing is
    // now.
    const bool is_same = context::is_handle_of(*captured_by, *capturing);
    for (fabric::Stream* stream = captured_streams; stream; stream = stream->next_captured) {
        captured_to[stream->pe()] = nullptr;
        if (is_same)
            context::claim_published(*captured_by, *stream);
        else if (!stream->is_complete(stream->published()))
            context::claim(capturing_since, capturing, *stream);
    }
    captured_streams = nullptr;
    // Release: pairs with RequestWait::RequestWait, which then sees the claims.
    captured_by->captures.fetch_sub(1, std::memory_order_release);
    captured_by->release();
}

heddle_stream* const* captured_or(heddle_stream* const* to) {
    return capturing ? table() : to;
}

}  // namespace heddle::operations
