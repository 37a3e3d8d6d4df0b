// Requests (docs/decisions/0010): one handle for a group of operations. An operation that is complete when it returns
// leaves no trace in a request; operations left to other threads or to a network are counted here.
//
// What a request counts:
//   sides[2]  outstanding operations. New ones are counted on the side that `turn` names. A waiter turns, so that the
//             other side gets no more, and is done when it has seen each side empty once: all operations posted before
//             the wait began are then complete, and operations that others go on posting do not delay it.
//   holds     references: one for each outstanding operation, and one for the program's handle. Whoever drops the last
//             one returns the object, and notifies the request that it was merged into.
//   claims    for operations on other nodes: up to which position of which stream (fabric/endpoint/stream.h) they were
//             posted. A stream reports completion by position, so posting costs two stores and completion nothing.
//
// Threads: any number may post to a SHARED request, wait and test; one at a time for a PRIVATE one. No lock. Checked
// runs verify what they can: that the handle is valid, and that no two threads post to a PRIVATE request at once.
#pragma once

#include "base/call.h"
#include "base/pe_local.h"
#include "fabric/endpoint/stream.h"
#include "sync/pool.h"

#include <heddle/request.h>
#include <atomic>
#include <cstdint>

namespace heddle::context {

struct Claim {
    sync::PoolLink link;
    fabric::Stream* stream = nullptr;
    std::atomic<uint64_t> position{0}, returns{0};
    Claim* next = nullptr;
};

struct alignas(128) Request {
    sync::PoolLink link;
    std::atomic<uint32_t> generation{0};  // moves when the handle ends: low bits are in the handle
    std::atomic<bool> alive{false};
    bool shared = false;
    std::atomic<uint32_t> turn{0};
    std::atomic<uint32_t> holds{0};
    alignas(64) std::atomic<uint32_t> sides[2] = {};
    std::atomic<Request*> parent{nullptr};  // what it was merged into
    uint32_t parent_side = 0;
    sync::Pool<Request, 64>* home = nullptr;
    std::atomic<Claim*> claims{nullptr};
    base::Call ended;                                 // of its last handle
    std::atomic<const char*> poster{nullptr};         // in a checked run, the function that posts at the moment,
    std::atomic<const void*> poster_caller{nullptr};  // and where it was called

    // Counts one operation; returns the side, for `complete`.
    uint32_t post();
    // It is complete.
    void complete(uint32_t side);
    // Takes one hold off.
    void release();

    // True when nothing is outstanding. Acquire: what the operations brought is seen.
    bool is_quiet() const {
        return sides[0].load(std::memory_order_acquire) == 0 && sides[1].load(std::memory_order_acquire) == 0 &&
               claims_are_complete();
    }
    bool claims_are_complete() const;
    // What was posted to the stream up to there joins.
    void add_claim(fabric::Stream& stream, uint64_t position, uint64_t returns);
};

using RequestPool = sync::Pool<Request, 64>;
extern HEDDLE_PE_LOCAL base::PePointer<RequestPool> request_pool;  // this PE's

// Sets up the pool of this PE. Requests of an earlier init are gone.
void start_requests();

// A new request, or SHMEMX_REQUEST_NULL when there is no memory.
shmemx_request_t make_request(bool shared);

// The request behind a handle; null for SHMEMX_REQUEST_NULL and HEDDLE_REQUEST_COMPLETE. Ends the PE when there is
// none, with the call that ended it where it is known.
Request* find_request(const base::Call& call, shmemx_request_t handle);

// The request that an operation posts to which will outlast its call; made when *req has none yet. Null when there is
// no memory.
Request* request_to_post(const base::Call& call, shmemx_request_t* req);

// What this thread, the stream's producer, has posted to it joins *req, which becomes a PRIVATE request when it is
// none. Ends the PE when there is no memory for one.
void claim(const base::Call& call, shmemx_request_t* req, fabric::Stream& stream);

// The claims of part become whole's.
void move_claims(Request* part, Request* whole);

// The program's handle of request ends; what is outstanding goes on.
void end_handle(const base::Call& call, Request* request);

// The bookkeeping of a wait: once is_over has returned true, all that was posted before the object was made is
// complete.
class RequestWait {
  public:
    enum class For { kAll, kSources };  // kSources: those of what goes to other nodes may be used again

    explicit RequestWait(Request* request, For what = For::kAll);
    bool is_over();

  private:
    bool sides_are_over();
    bool claims_are_over();

    static constexpr int kSeen = 8;

    Request* request_;
    const For what_;
    uint32_t first_turn_;
    bool empty_[2] = {false, false};  // seen since
    // The claims as they were, so that what others go on posting does not hold this wait up; beyond kSeen as they are.
    struct Seen {
        const Claim* claim;
        uint64_t position, returns;
    } seen_[kSeen];
    int n_seen_ = 0;
    Claim* unseen_ = nullptr;
};

// An operation that joins *req. In a checked run it checks *req, makes a request of SHMEMX_REQUEST_NULL, and ends the
// PE when two threads have one of these for the same PRIVATE request at once.
class Posting {
  public:
    Posting(const base::Call& call, shmemx_request_t* req);
    ~Posting();
    Posting(const Posting&) = delete;
    Posting& operator=(const Posting&) = delete;

  private:
    Request* request_ = nullptr;  // that is marked
};

}  // namespace heddle::context
