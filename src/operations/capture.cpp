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
constinit thread_local context::Request* captured_by = nullptr;

namespace {

thread_local base::Call capturing_since;  // the call of shmemx_request_begin
// By PE: the streams to those in the list, of heddle_streams_2; null: the library looks first. The list is no part of
// the streams, which another thread may have before this one notices that their context has been destroyed.
constinit thread_local heddle_stream** captured_to = nullptr;
constinit thread_local int* next_captured = nullptr;  // by PE: the next one of the list
constinit thread_local int first_captured = -1;       // -1: none
constinit thread_local int captured_pes = 0;

void free_table() {
    free(captured_to);
    free(next_captured);
    captured_to = nullptr;
    next_captured = nullptr;
    captured_pes = 0;
}

// At the end of a thread, which may end between shmemx_request_begin and _end.
void leave_table() {
    settle_capture();
    heddle_streams_2.n_pes = 0;  // other thread-specific destructors may still put
    free_table();
}

// The table of this thread, empty.
heddle_stream* const* table() {
    const int n_pes = memory::symmetric->n_pes;
    if (captured_pes < n_pes) {
        free_table();
        captured_to = static_cast<heddle_stream**>(calloc(static_cast<size_t>(n_pes), sizeof *captured_to));
        next_captured = static_cast<int*>(calloc(static_cast<size_t>(n_pes), sizeof *next_captured));
        if (!captured_to || !next_captured)
            base::fatal("network", "no memory for the streams of a request");
        captured_pes = n_pes;
        os::ThreadExit<leave_table>::ask();
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
        heddle_streams_2.nbi_to = table();
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
    heddle_streams_2.nbi_to = heddle_streams_2.to;
}

void capture_stream(const base::Call& call, shmem_ctx_t ctx, int pe) {
    fabric::Stream* const stream = stream_at_once(heddle_streams_2, ctx, pe);
    // Of several rails the next message may take another one.
    if (!stream || stream->rails || captured_to[pe] || !context::is_claimed_by(*stream, *capturing))
        return;
    if (!captured_by) {
        // No hold: what it was merged into waits for those. Where the object is another request by the time that this
        // thread settles, that one has only waited for more.
        captured_by = context::find_request(call, *capturing);
        // Relaxed: who waits for what inlined code puts from here on synchronizes through the program.
        captured_by->captures.fetch_add(1, std::memory_order_relaxed);
    }
    captured_to[pe] = stream->head();
    next_captured[pe] = first_captured;
    first_captured = pe;
}

void settle_captured() {
    // Another thread may have waited for it, with all that was put before. What came behind joins what *capturing is
    // now.
    const bool is_same = context::is_handle_of(*captured_by, *capturing);
    context::Request* joined = is_same ? captured_by : nullptr;
    for (int pe = first_captured; pe >= 0; pe = next_captured[pe]) {
        fabric::Stream& stream = *fabric::Stream::with(captured_to[pe]);
        captured_to[pe] = nullptr;
        if (!joined && stream.is_complete(stream.published()))
            continue;
        if (!joined)
            joined = context::request_to_post(capturing_since, capturing);
        if (!joined)
            base::fatal(capturing_since.function, "no memory for a request");
        context::claim_published(*joined, stream);
    }
    first_captured = -1;
    // Release: pairs with context::claim_captured, which then sees the claims.
    captured_by->captures.fetch_sub(1, std::memory_order_release);
    captured_by = nullptr;
}

heddle_stream* const* captured_or(heddle_stream* const* to) {
    return capturing ? table() : to;
}

}  // namespace heddle::operations
