// Requests (docs/decisions/0010): one handle for a group of operations. An operation that is complete when it returns
// leaves no trace in a request. Operations left to other threads or to a network are counted here.
//
// What a request counts:
//   sides[2]  outstanding operations. A new one is counted on the side that `turn` names. A waiter advances `turn`, so
//             that the other side gets no more, and is done when it has seen each side empty once. All operations
//             posted before the wait began are then complete. Operations posted meanwhile do not delay the wait.
//   announced operations of several threads that not all have posted yet (collective/posted_group.h). A wait of one of
//             those that have posted covers them; for the others they are counted later, on a side.
//   holds     references: one for each outstanding or announced operation, and one for the program's handle. The
//             thread that drops the last one returns the object to its pool, and completes an operation of the request
//             into which it was merged.
//   claims    for operations on other nodes: the position of a stream (fabric/endpoint/stream.h) up to which they were
//             posted. A stream reports completion by position, so posting costs two stores and completion nothing.
//
// Threads: any number may post to a SHARED request, wait and test; one at a time for a PRIVATE one. No lock. A checked
// run verifies that handles are valid, and that no two threads post to a PRIVATE request at once.
#pragma once

#include "base/call.h"
#include "base/invariant.h"
#include "base/pe_local.h"
#include "fabric/endpoint/stream.h"
#include "sync/pool.h"

#include <heddle/request.h>
#include <atomic>
#include <cstdint>

namespace heddle::context {

struct Claim {
    std::atomic<uint64_t> position{0};  // first: inlined code knows it (heddle_stream::claimed)
    std::atomic<uint64_t> returns{0};
    sync::PoolLink link;
    fabric::Stream* stream = nullptr;
    Claim* next = nullptr;

    // Acquire: pairs with context::raise and context::claim_again; the number of returns is that of the position, or a
    // later one.
    bool is_complete() const {
        const uint64_t up_to = position.load(std::memory_order_acquire);
        return stream->is_complete(up_to) && stream->has_returned(returns.load(std::memory_order_relaxed));
    }
};

struct alignas(128) Request {
    sync::PoolLink link;
    std::atomic<uint32_t> generation{0};  // advances when the handle ends; its low bits are in the handle
    std::atomic<bool> alive{false};
    bool shared = false;
    std::atomic<uint32_t> turn{0};
    std::atomic<uint32_t> holds{0};
    alignas(64) std::atomic<uint32_t> sides[2] = {};
    std::atomic<Request*> parent{nullptr};  // the request that this one was merged into
    uint32_t parent_side = 0;
    sync::Pool<Request, 64>* home = nullptr;  // the pool that the object returns to
    std::atomic<Claim*> claims{nullptr};
    std::atomic<uint32_t> announced{0};
    // Threads whose inlined code puts what is not in the claims yet (operations/capture.h).
    std::atomic<uint32_t> captures{0};
    // Of the thread that posts: the stream set that alone has records of before the last fence
    // (operations/request_fence.h).
    static constexpr int64_t kNone = -1;
    int64_t fenced_stream_set = kNone;
    base::Call ended;                                 // the call that ended the last handle
    std::atomic<const char*> poster{nullptr};         // in a checked run: the function that is posting now
    std::atomic<const void*> poster_caller{nullptr};  // in a checked run: the place of that call

    // Counts one operation; returns the side, for `complete`.
    uint32_t post();
    // Announces one operation, which is counted when post_announced is called. Any thread.
    void announce();
    uint32_t post_announced();
    // Counts one operation of this side as complete.
    void complete(uint32_t side);
    // Drops one hold.
    void release();

    // True when nothing is outstanding. Acquire: pairs with Request::complete; what the operations wrote is seen.
    bool is_quiet() const {
        return sides[0].load(std::memory_order_acquire) == 0 && sides[1].load(std::memory_order_acquire) == 0 &&
               claims_are_complete();
    }
    // True when nothing is outstanding or announced. Acquire: pairs with Request::post_announced, which counts before.
    bool has_nothing() const { return announced.load(std::memory_order_acquire) == 0 && is_quiet(); }
    // Acquire: pairs with Request::add_claim.
    bool claims_are_complete() const;
    // Adds what was posted to the stream up to this position and this number of returns. The claim of the stream.
    Claim& add_claim(fabric::Stream& stream, uint64_t position, uint64_t returns);
    // Calls visit(stream, whether it is complete) for every claim. Acquire: pairs with Request::add_claim.
    template <class Visit>
    void for_claims(Visit visit) const {
        for (const Claim* claim = claims.load(std::memory_order_acquire); claim; claim = claim->next)
            visit(*claim->stream, claim->is_complete());
    }
};

using RequestPool = sync::Pool<Request, 64>;
extern HEDDLE_PE_LOCAL base::PePointer<RequestPool> request_pool;  // this PE's

// Sets up the pool of this PE. Requests of an earlier init are gone.
void start_requests();

// A new request, or SHMEMX_REQUEST_NULL when there is no memory.
shmemx_request_t make_request(bool shared);

// The request of a handle; null for SHMEMX_REQUEST_NULL and HEDDLE_REQUEST_COMPLETE. An invalid handle ends the PE; the
// message names the call that ended the request, if known.
Request* find_request(const base::Call& call, shmemx_request_t handle);

// True when the handle is the request's, which has not ended.
bool is_handle_of(const Request& request, shmemx_request_t handle);

// True when nothing of the request is outstanding. handle: of a request, alive or not.
bool is_quiet(shmemx_request_t handle);

// The request for an operation that will outlast its call, made if *req has none yet. Null when there is no memory.
Request* request_to_post(const base::Call& call, shmemx_request_t* req);

// Adds to *req what this thread, the stream's producer, has posted to the stream; makes a PRIVATE request if *req has
// none. Ends the PE when there is no memory for one.
void claim(const base::Call& call, shmemx_request_t* req, fabric::Stream& stream);
// True where inlined code adds its puts to the stream to the request of that handle by itself: since the last claim.
inline bool is_claimed_by(const fabric::Stream& stream, shmemx_request_t handle) {
    return __atomic_load_n(&stream.head()->request, __ATOMIC_RELAXED) == handle;
}
// Adds what has been published to the stream. Any thread.
void claim_published(Request& request, fabric::Stream& stream);
// Ahead of all that looks at the request: adds what inlined code of other threads may have put for it.
void claim_captured(Request& request);
// claim, for the request that the stream claims for. returns: the last operation has one.
inline void claim_again(fabric::Stream& stream, bool returns = true) {
    auto& known = *reinterpret_cast<Claim*>(stream.head()->claimed);
    HEDDLE_INVARIANT(known.stream == &stream);
    if (returns)
        known.returns.store(stream.returns(), std::memory_order_relaxed);
    // Release: pairs with Claim::is_complete, context::move_claims, RequestWait::RequestWait and
    // RequestWait::claims_are_over.
    known.position.store(stream.position(), std::memory_order_release);
}
// From here on it leaves them to the library. Any thread.
void forget_claim(const fabric::Stream& stream, const Request& request);

// Copies the claims of part to whole.
void move_claims(Request* part, Request* whole);

// Ends the program's handle of the request; outstanding operations continue.
void end_handle(const base::Call& call, Request* request);

// The state of one wait. Once is_over has returned true, all operations posted before the object was made are complete.
class RequestWait {
  public:
    // kSources: for operations on other nodes, until their sources may be reused. kNode: not for those at all;
    // kOtherNodes: for those alone.
    enum class For { kAll, kSources, kNode, kOtherNodes };

    explicit RequestWait(Request* request, For what = For::kAll);
    // The waiting thread asks is_over; another thread may ask has_ended for it, one at a time.
    bool is_over();
    bool has_ended() { return sides_are_over() && claims_are_over(); }

  private:
    bool sides_are_over();
    bool claims_are_over();

    static constexpr int kSeen = 8;

    Request* request_;
    const For what_;
    uint32_t first_turn_;
    bool empty_[2] = {false, false};  // seen empty since the wait began
    // The claims when the wait began, so that operations posted later do not delay it. Claims beyond kSeen are read
    // again.
    struct Seen {
        const Claim* claim;
        uint64_t position, returns;
    } seen_[kSeen];
    int n_seen_ = 0;
    Claim* unseen_ = nullptr;
};

// One operation that joins *req. In a checked run: checks *req, makes a request of SHMEMX_REQUEST_NULL, and ends the PE
// when two threads post to the same PRIVATE request at once.
class Posting {
  public:
    Posting(const base::Call& call, shmemx_request_t* req);
    ~Posting();
    Posting(const Posting&) = delete;
    Posting& operator=(const Posting&) = delete;

  private:
    Request* request_ = nullptr;  // marked with this thread as its poster
};

}  // namespace heddle::context
