#include "context/request.h"

#include "base/error.h"
#include "base/invariant.h"
#include "base/settings.h"
#include "context/context.h"
#include "fabric/network.h"

#include <sched.h>
#include <cstddef>

namespace heddle::context {

HEDDLE_PE_LOCAL base::PePointer<RequestPool> request_pool;

namespace {

using ClaimPool = sync::Pool<Claim, 64>;
HEDDLE_PE_LOCAL base::PePointer<ClaimPool> claim_pool;

// A handle is the request's address. The bits below its alignment hold the generation, and HEDDLE_REQUEST_SKIP_POST:
// operations that are complete need not be posted (heddle/request.h).
constexpr uintptr_t kLowBits = alignof(Request) - 1;
constexpr int kGenerationShift = 1;
constexpr uint32_t kGenerationMask = kLowBits >> kGenerationShift;

shmemx_request_t handle_of(const Request* request) {
    const uintptr_t generation = request->generation.load(std::memory_order_relaxed) & kGenerationMask;
    const uintptr_t untold = base::settings.observed ? 0 : HEDDLE_REQUEST_SKIP_POST;
    return reinterpret_cast<shmemx_request_t>(reinterpret_cast<uintptr_t>(request) | generation << kGenerationShift |
                                              untold);
}

Request* address_of(shmemx_request_t handle) {
    return reinterpret_cast<Request*>(reinterpret_cast<uintptr_t>(handle) & ~kLowBits);
}

bool is_complete(const Claim& claim, uint64_t position, uint64_t returns) {
    return claim.stream->is_complete(position) && claim.stream->has_returned(returns);
}

// Stores a larger value; positions and numbers of returns only grow. Release: pairs with Claim::is_complete,
// context::move_claims, RequestWait::RequestWait and RequestWait::claims_are_over.
void raise(std::atomic<uint64_t>& value, uint64_t to) {
    uint64_t now = value.load(std::memory_order_relaxed);
    while (now < to && !value.compare_exchange_weak(now, to, std::memory_order_release, std::memory_order_relaxed)) {
    }
}

void give_claims(Claim* claim) {
    while (claim) {
        Claim* const next = claim->next;
        claim_pool->give(claim);
        claim = next;
    }
}

void check_handle(const base::Call& call, shmemx_request_t handle) {
    const Request* request = request_pool->find(address_of(handle));
    if (!request)
        base::fatal(call.function,
                    "request %p is none of this PE, in %s: right would be a handle that this PE has made",
                    static_cast<void*>(handle), base::describe(call).data());
    if (is_handle_of(*request, handle))
        return;
    const base::Call ended = request->ended;
    base::fatal(call.function, "request %p is used in %s, but has ended%s%s", static_cast<void*>(handle),
                base::describe(call).data(), ended.function ? " in " : "",
                ended.function ? base::describe(ended).data() : "");
}

}  // namespace

uint32_t Request::post() {
    // Relaxed, all: a thread that waits for this operation synchronizes with its poster through the program.
    const uint32_t side = turn.load(std::memory_order_relaxed) & 1;
    [[maybe_unused]] const uint32_t held = holds.fetch_add(1, std::memory_order_relaxed);
    HEDDLE_INVARIANT(held != 0);  // nobody posts to a request that has gone back to its pool
    sides[side].fetch_add(1, std::memory_order_relaxed);
    return side;
}

// Relaxed, all but the last: as in post.
void Request::announce() {
    [[maybe_unused]] const uint32_t held = holds.fetch_add(1, std::memory_order_relaxed);
    HEDDLE_INVARIANT(held != 0);
    announced.fetch_add(1, std::memory_order_relaxed);
}

uint32_t Request::post_announced() {
    const uint32_t side = turn.load(std::memory_order_relaxed) & 1;
    sides[side].fetch_add(1, std::memory_order_relaxed);
    // Release: pairs with Request::has_nothing and collective::are_posts_of_this_thread_whole.
    [[maybe_unused]] const uint32_t before = announced.fetch_sub(1, std::memory_order_release);
    HEDDLE_INVARIANT(before != 0);
    return side;
}

void Request::complete(uint32_t side) {
    tsan::release(this);
    [[maybe_unused]] const uint32_t posted =
        // Pairs with RequestWait::sides_are_over and Request::is_quiet.
        sides[side].fetch_sub(1, std::memory_order_release);
    HEDDLE_INVARIANT(side <= 1 && posted != 0);  // an operation is complete once, on its own side
    release();
}

void Request::release() {
    // acq_rel: the thread that drops the last hold sees what was done under the others.
    const uint32_t held = holds.fetch_sub(1, std::memory_order_acq_rel);
    HEDDLE_INVARIANT(held != 0);
    if (held != 1)
        return;
    // Each outstanding operation has a hold: behind the last one there is none, and no handle.
    HEDDLE_INVARIANT(sides[0].load(std::memory_order_relaxed) == 0 && sides[1].load(std::memory_order_relaxed) == 0);
    HEDDLE_INVARIANT(!alive.load(std::memory_order_relaxed));
    Request* const into = parent.load(std::memory_order_relaxed);
    const uint32_t side = parent_side;
    home->give(this);
    if (into)
        into->complete(side);
}

void start_requests() {
    // Streams outlive the pools: what they know is of requests that are gone.
    if (fabric::network)
        fabric::network->for_each_stream_set([](fabric::StreamSet& stream_set) {
            stream_set.all([](fabric::Stream& stream) {
                __atomic_store_n(&stream.head()->request, HEDDLE_NO_REQUEST, __ATOMIC_RELAXED);
                return true;
            });
        });
    delete request_pool;
    delete claim_pool;
    request_pool = new RequestPool;
    claim_pool = new ClaimPool;
}

shmemx_request_t make_request(bool shared) {
    Request* request = request_pool->take();
    if (!request)
        return SHMEMX_REQUEST_NULL;
    HEDDLE_INVARIANT((reinterpret_cast<uintptr_t>(request) & kLowBits) == 0);  // where the handle keeps other things
    HEDDLE_INVARIANT(!request->alive.load(std::memory_order_relaxed));
    HEDDLE_INVARIANT(request->holds.load(std::memory_order_relaxed) == 0);
    HEDDLE_INVARIANT(request->claims.load(std::memory_order_relaxed) == nullptr);
    request->home = request_pool;
    request->shared = shared;
    request->parent.store(nullptr, std::memory_order_relaxed);
    request->holds.store(1, std::memory_order_relaxed);
    request->alive.store(true, std::memory_order_release);  // pairs with context::is_handle_of
    return handle_of(request);
}

Request* find_request(const base::Call& call, shmemx_request_t handle) {
    if (handle == SHMEMX_REQUEST_NULL || handle == HEDDLE_REQUEST_COMPLETE)
        return nullptr;
    check_handle(call, handle);
    return address_of(handle);
}

bool is_handle_of(const Request& request, shmemx_request_t handle) {
    // Acquire: pairs with context::end_handle and context::make_request.
    return request.alive.load(std::memory_order_acquire) && handle_of(&request) == handle;
}

bool is_quiet(shmemx_request_t handle) {
    return address_of(handle)->is_quiet();
}

Request* request_to_post(const base::Call& call, shmemx_request_t* req) {
    if (Request* request = find_request(call, *req))
        return request;
    const shmemx_request_t made = make_request(false);
    if (made != SHMEMX_REQUEST_NULL)
        *req = made;
    return find_request(call, made);
}

void end_handle(const base::Call& call, Request* request) {
    HEDDLE_INVARIANT(request->alive.load(std::memory_order_relaxed));  // a handle ends once
    request->for_claims([&](fabric::Stream& stream, bool) { forget_claim(stream, *request); });
    request->fenced_stream_set = Request::kNone;
    // Inlined code of threads whose operations join the request calls the library: these join another one from here on.
    // Relaxed: the threads synchronize through the program.
    if (request->captures.load(std::memory_order_relaxed) != 0)
        stream_sets_epoch().fetch_add(1, std::memory_order_relaxed);
    if (Claim* claim = request->claims.exchange(nullptr, std::memory_order_acquire))  // pairs with Request::add_claim
        give_claims(claim);
    request->ended = call;
    request->generation.fetch_add(1, std::memory_order_relaxed);
    request->alive.store(false, std::memory_order_release);  // pairs with context::is_handle_of
    request->release();
}

// Acquire: pairs with Request::add_claim.
bool Request::claims_are_complete() const {
    for (const Claim* claim = claims.load(std::memory_order_acquire); claim; claim = claim->next)
        if (!claim->is_complete())
            return false;
    return true;
}

Claim& Request::add_claim(fabric::Stream& stream, uint64_t position, uint64_t returns) {
    Claim* first = claims.load(std::memory_order_acquire);  // pairs with Request::add_claim
    for (Claim* claim = first; claim; claim = claim->next) {
        if (claim->stream != &stream)
            continue;
        raise(claim->returns, returns);
        raise(claim->position, position);
        return *claim;
    }
    Claim* const claim = claim_pool->take();
    if (!claim)
        base::fatal("network", "no memory for a request");
    claim->stream = &stream;
    claim->position.store(position, std::memory_order_relaxed);
    claim->returns.store(returns, std::memory_order_relaxed);
    // Release: pairs with Request::add_claim, Request::claims_are_complete, Request::for_claims, context::end_handle,
    // context::move_claims and RequestWait::RequestWait.
    do {
        claim->next = first;
    } while (!claims.compare_exchange_weak(first, claim, std::memory_order_release, std::memory_order_relaxed));
    return *claim;
}

void claim(const base::Call& call, shmemx_request_t* req, fabric::Stream& stream) {
    heddle_stream& head = *stream.head();
    if (is_claimed_by(stream, *req))
        return claim_again(stream);
    Request* const request = request_to_post(call, req);
    if (!request)
        base::fatal(call.function, "no memory for a request");
    Claim& mine = request->add_claim(stream, stream.position(), stream.returns());
    if (base::settings.observed)
        return;  // every operation is looked at
    static_assert(offsetof(Claim, position) == 0 && sizeof mine.position == sizeof *head.claimed);
    head.claimed = reinterpret_cast<uint64_t*>(&mine);
    __atomic_store_n(&head.request, *req, __ATOMIC_RELAXED);
}

void claim_published(Request& request, fabric::Stream& stream) {
    if (is_claimed_by(stream, handle_of(&request)))
        raise(reinterpret_cast<Claim*>(stream.head()->claimed)->position, stream.published());
    else
        request.add_claim(stream, stream.published(), stream.published_returns());
}

// Which puts are captured only the thread that captures knows: those that are under way, of any thread.
void claim_captured(Request& request) {
    // Acquire: pairs with operations::settle_captured.
    if (request.captures.load(std::memory_order_acquire) == 0 || !fabric::network)
        return;
    fabric::network->for_each_stream_set([&](fabric::StreamSet& stream_set) {
        stream_set.all_active([&](fabric::Stream& stream) {
            request.add_claim(stream, stream.published(), stream.published_returns());
            return true;
        });
    });
}

void forget_claim(const fabric::Stream& stream, const Request& request) {
    // Relaxed, and not one step: where the stream's producer claims for another request meanwhile, it claims again.
    if (is_claimed_by(stream, handle_of(&request)))
        __atomic_store_n(&stream.head()->request, HEDDLE_NO_REQUEST, __ATOMIC_RELAXED);
}

// Acquire: pairs with Request::add_claim, context::raise and context::claim_again.
void move_claims(Request* part, Request* whole) {
    for (Claim* claim = part->claims.load(std::memory_order_acquire); claim; claim = claim->next)
        whole->add_claim(*claim->stream, claim->position.load(std::memory_order_acquire),
                         claim->returns.load(std::memory_order_relaxed));
}

RequestWait::RequestWait(Request* request, For what)
    : request_(request), what_(what), first_turn_(request->turn.load(std::memory_order_acquire)) {
    if (what == For::kNode)
        return;
    claim_captured(*request);
    Claim* claim = request->claims.load(std::memory_order_acquire);  // pairs with Request::add_claim
    for (; claim; claim = claim->next) {
        // Acquire: pairs with context::claim_again and context::raise; the number of returns is the position's, or a
        // later one.
        const uint64_t position = claim->position.load(std::memory_order_acquire);
        const uint64_t returns = claim->returns.load(std::memory_order_relaxed);
        if (is_complete(*claim, position, returns))
            continue;
        claim->stream->flush();
        if (n_seen_ == kSeen) {
            unseen_ = unseen_ ? unseen_ : claim;
            continue;
        }
        HEDDLE_INVARIANT(n_seen_ < kSeen);
        seen_[n_seen_++] = {claim, position, returns};
    }
}

bool RequestWait::is_over() {
    if (!has_ended())
        return false;
    tsan::acquire(request_);
    return true;
}

bool RequestWait::claims_are_over() {
    const auto is_over = [&](const Claim& claim, uint64_t position, uint64_t returns) {
        return is_complete(claim, position, returns) || (what_ == For::kSources && claim.stream->is_local());
    };
    while (n_seen_ > 0 && is_over(*seen_[n_seen_ - 1].claim, seen_[n_seen_ - 1].position, seen_[n_seen_ - 1].returns))
        --n_seen_;
    if (n_seen_ > 0)
        return false;
    for (; unseen_; unseen_ = unseen_->next)
        // Acquire: pairs with context::claim_again and context::raise.
        if (!is_over(*unseen_, unseen_->position.load(std::memory_order_acquire),
                     unseen_->returns.load(std::memory_order_relaxed)))
            return false;
    return true;
}

bool RequestWait::sides_are_over() {
    if (what_ == For::kOtherNodes)
        return true;
    for (int side : {0, 1})
        // Pairs with Request::complete.
        empty_[side] = empty_[side] || request_->sides[side].load(std::memory_order_acquire) == 0;
    if (empty_[0] && empty_[1])
        return true;
    // Acquire: pairs with RequestWait::sides_are_over; the thread that advanced `turn` had seen a side empty.
    uint32_t turn = request_->turn.load(std::memory_order_acquire);
    // Turn n + 1 begins when the side that it brings into use was seen empty during turn n. After three turns since
    // this wait began, both sides have therefore been empty since then.
    if (turn - first_turn_ >= 3)
        return true;
    const uint32_t now = turn & 1;
    if (!empty_[now] && request_->sides[1 - now].load(std::memory_order_acquire) == 0)
        request_->turn.compare_exchange_strong(turn, turn + 1, std::memory_order_acq_rel, std::memory_order_relaxed);
    return false;
}

// Acquire: pairs with Posting::~Posting.
Posting::Posting(const base::Call& call, shmemx_request_t* req) {
    if (!base::settings.check)
        return;
    Request* request = request_to_post(call, req);
    if (!request || request->shared)
        return;
    const char* other = nullptr;
    if (!request->poster.compare_exchange_strong(other, call.function, std::memory_order_acquire)) {
        // Relaxed: the caller may be that of a moment ago, or none.
        const base::Call theirs = {other, request->poster_caller.load(std::memory_order_relaxed)};
        base::fatal(call.function,
                    "two threads post to one PRIVATE request at once, in %s and in %s: right would be "
                    "SHMEMX_REQUEST_SHARED, or a request for each thread",
                    base::describe(theirs).data(), base::describe(call).data());
    }
    request->poster_caller.store(call.caller, std::memory_order_relaxed);
    request_ = request;
    sched_yield();  // gives another thread that posts at the same time the chance to do it now
}

Posting::~Posting() {
    HEDDLE_INVARIANT(!request_ ||
                     request_->poster.load(std::memory_order_relaxed));  // what is marked stays so until now
    if (request_)
        request_->poster.store(nullptr, std::memory_order_release);  // pairs with Posting::Posting
}

}  // namespace heddle::context
