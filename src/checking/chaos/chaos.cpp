#include "checking/chaos/chaos.h"

#include "base/error.h"
#include "context/context.h"
#include "operations/order.h"
#include "operations/transfer.h"
#include "os/clock.h"
#include "os/locked.h"
#include "os/own_thread.h"
#include "progress/engine.h"
#include "progress/wait_policy.h"

#include <heddle/constants.h>
#include <sched.h>
#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace heddle::checking {

using operations::Operation;
using operations::Unobserved;

namespace {

// The calling thread's numbers, and the Chaos that they were seeded for: a later init has another one.
struct ThreadRandom {
    Random random;
    uint64_t begin_ns = 0;
};
constinit thread_local ThreadRandom thread_random;

bool keeps_order(const Operation& operation) {
    return (context::context_of(operation.ctx).options & SHMEMX_CTX_ORDERED) != 0;
}

bool is_put_or_get(const Operation& operation) {
    return operation.kind == Operation::Kind::kPut || operation.kind == Operation::Kind::kGet;
}

// Of the data that a late blocking operation needs a copy of.
size_t bytes_to_copy(const Operation& operation) {
    const bool sends = operation.kind == Operation::Kind::kPut || operation.kind == Operation::Kind::kPutSignal;
    return sends && operation.blocking ? operation.block_bytes() * operation.nblocks : 0;
}

}  // namespace

Chaos::Chaos(uint64_t seed, int pe)
    : seed_(mix(seed) + static_cast<uint64_t>(pe) * 0x9e3779b97f4a7c15), begin_ns_(os::now_ns()) {
    if (progress::pe_of_thread)
        pe_ = progress::pe_of_thread();
    has_thread_ = os::start_own_thread(&thread_, run_thread, this) == 0;
    if (!has_thread_)
        base::fatal("HEDDLE_CHAOS", "the thread that delivers late operations cannot be started");
}

Chaos::~Chaos() {
    pthread_mutex_destroy(&lock_);
}

// Threads are numbered as they come.
Random& Chaos::my_random() {
    ThreadRandom& mine = thread_random;
    if (mine.begin_ns != begin_ns_) {
        // Relaxed: only distinct numbers matter.
        mine.random = Random(seed_ + mix(threads_.fetch_add(1, std::memory_order_relaxed) + 1));
        mine.begin_ns = begin_ns_;
    }
    return mine.random;
}

// True, and the time is counted, while what was spent is at most kFreePauseNs and one in `share` of what the PE has
// computed. Not of the time that has passed, nor of what its waits took: PEs that wait for each other would all earn by
// the pauses of one.
bool Chaos::spend(std::atomic<uint64_t>& spent_ns, uint64_t length_ns, uint64_t share) {
    // Relaxed: see WaitSteps. Waits first, as both grow: what a wait took is in the time that is read behind it.
    const uint64_t waits_ns = progress::wait_policy->cpu_of_waits_ns.load(std::memory_order_relaxed);
    const uint64_t computed_ns = os::clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    const uint64_t allowed = kFreePauseNs + (computed_ns - std::min(computed_ns, waits_ns)) / share;
    // Relaxed: two threads may spend a little more together.
    if (spent_ns.load(std::memory_order_relaxed) + length_ns > allowed)
        return false;
    spent_ns.fetch_add(length_ns, std::memory_order_relaxed);
    return true;
}

// Between 10 us and kLongestPauseNs; nothing while the PE has been paused as long as it has computed.
void Chaos::pause(Random& random) {
    constexpr uint64_t kShortestNs = 10000;
    constexpr uint64_t kDoublings = std::bit_width(kLongestPauseNs / kShortestNs);
    const uint64_t length = std::min(kShortestNs << random.below(kDoublings), kLongestPauseNs);
    if (spend(paused_ns_, length, kPauseShare))
        os::sleep_ns(length);
    else
        sched_yield();
}

// For each target one of: seldom, half of the time, mostly, always. Which it is changes with each quiet.
bool Chaos::is_late(Random& random, const Operation& operation) const {
    const uint64_t mood = mix(seed_ + phase_ * 4096 + static_cast<uint64_t>(operation.world_pe)) % 4;
    constexpr uint64_t kEighths[] = {1, 4, 7, 8};
    return random.below(8) < kEighths[mood];
}

// --- Delivery. Under the lock.

// Complete, where a request waits for it; otherwise, its buffers may be reused.
void Chaos::deliver_now(const Operation& operation) {
    const Unobserved mark;
    operations::carry_out(operation);
    if (operation.req)
        operations::pe_quiet(operation.call.function, operation.ctx, &operation.pe, 1);
}

// The operation was taken from late_.
void Chaos::deliver(LateOperation& late) {
    const Unobserved mark;
    // Relaxed: a thread that reads an old number looks under the lock, or its operations were not late.
    n_late_.store(static_cast<uint32_t>(late_.size()), std::memory_order_relaxed);
    Operation& operation = late.operation;
    operations::carry_out(operation);
    // What leaves on the same context behind a fence may take another way through the network.
    if (late.fenced || keeps_order(operation))
        operations::fence(operation.call.function, operation.ctx);
    if (!late.request)
        return;
    operations::pe_quiet(operation.call.function, operation.ctx, &operation.pe, 1);
    late.request->complete(late.side);
    progress::engine->wake_waiters();
}

bool Chaos::deliver_one(Random& random, const Selection& selection) {
    LateOperation late;
    if (!late_.take(random, selection, &late))
        return false;
    deliver(late);
    return true;
}

void Chaos::deliver_some(Random& random) {
    if (!late_.empty() && random.one_in(4))
        deliver_one(random, {});
}

// --- Keeping. Under the lock.

// Of a put or get the elements, or blocks, from begin to end; otherwise the whole.
void Chaos::keep_part(Random& random, const LateOperation& whole, size_t begin, size_t end) {
    LateOperation part = whole;
    Operation& operation = part.operation;
    if (is_put_or_get(operation)) {
        const bool by_blocks = operation.nblocks > 1;
        const size_t dest_step = by_blocks ? operation.dest_step : operation.element_bytes;
        const size_t source_step = by_blocks ? operation.source_step : operation.element_bytes;
        operation.dest = static_cast<char*>(operation.dest) + begin * dest_step;
        operation.source = static_cast<const char*>(operation.source) + begin * source_step;
        (by_blocks ? operation.nblocks : operation.nelems) = end - begin;
    }
    part.bytes = bytes_to_copy(operation);
    part.due_ns = os::now_ns() + kDueNs / 8 + random.below(kDueNs);
    if (part.request)
        part.side = part.request->post();
    late_.add(std::move(part));
}

// False when the operation has to be carried out now: there is no memory for a request.
bool Chaos::keep(Random& random, const Operation& operation) {
    LateOperation whole;
    whole.operation = operation;
    whole.operation.req = nullptr;
    if (operation.req) {
        whole.request = context::request_to_post(operation.call, operation.req);
        if (!whole.request)
            return false;
    }
    if (const size_t bytes = bytes_to_copy(operation)) {
        const std::shared_ptr<char[]> data(new char[bytes]);
        const size_t block_bytes = operation.block_bytes();
        for (size_t i = 0; i < operation.nblocks; ++i)
            memcpy(data.get() + i * block_bytes, static_cast<const char*>(operation.source) + i * operation.source_step,
                   block_bytes);
        whole.operation.source = data.get();
        whole.operation.source_step = block_bytes;
        whole.data = data;
    }
    const bool was_empty = late_.empty();
    const size_t units = !is_put_or_get(operation) ? 1 : operation.nblocks > 1 ? operation.nblocks : operation.nelems;
    size_t begin = 0;
    for (uint64_t parts = 1 + random.below(kParts); parts > 1 && units - begin > 1; --parts) {
        const size_t end = begin + 1 + random.below(units - begin - 1);
        keep_part(random, whole, begin, end);
        begin = end;
    }
    keep_part(random, whole, begin, units);
    n_late_.store(static_cast<uint32_t>(late_.size()), std::memory_order_relaxed);
    if (was_empty)
        work_.advance();  // pairs with Chaos::run
    return true;
}

// --- The observer

bool Chaos::issue(const Operation& operation) {
    const Unobserved mark;
    Random& random = my_random();
    if (random.one_in(64))
        pause(random);
    const os::Locked lock(lock_);
    deliver_some(random);
    if (keeps_order(operation))
        late_.fence(operation.ctx);
    const bool may_be_late = operation.only_stores() || !operation.blocking;
    if (may_be_late && late_.size() + kParts <= kMostOperations &&
        late_.bytes() + bytes_to_copy(operation) <= kMostBytes && is_late(random, operation) && keep(random, operation))
        return true;
    // A fence orders all but gets.
    if (operation.kind != Operation::Kind::kGet) {
        LateOperation late;
        while (late_.take_earlier(random, operation, &late)) deliver(late);
    }
    deliver_now(operation);
    if (operation.req)
        operations::join(operation.call, operation.req);
    return true;
}

void Chaos::order(const char*, shmem_ctx_t ctx) {
    const Unobserved mark;
    const os::Locked lock(lock_);
    late_.fence(ctx);
}

void Chaos::complete(const char*, shmem_ctx_t ctx, const int* pes, size_t npes) {
    const Unobserved mark;
    Random& random = my_random();
    const Selection selection = {.ctx = ctx, .pes = pes, .npes = npes};
    // Relaxed: see deliver.
    if (n_late_.load(std::memory_order_relaxed) != 0 && random.one_in(2) &&
        paused_ns_.load(std::memory_order_relaxed) < kFreePauseNs)
        pause(random);
    for (;;) {
        {
            const os::Locked lock(lock_);
            if (!deliver_one(random, selection)) {
                ++phase_;
                return;
            }
        }
        if (random.one_in(8))
            pause(random);
    }
}

bool Chaos::is_complete(shmem_ctx_t ctx) {
    const Unobserved mark;
    const os::Locked lock(lock_);
    deliver_one(my_random(), {.ctx = ctx});
    return !late_.has({.ctx = ctx});
}

void Chaos::look() {
    const Unobserved mark;
    // Relaxed: see deliver.
    if (n_late_.load(std::memory_order_relaxed) == 0)
        return;
    const os::Locked lock(lock_);
    deliver_some(my_random());
}

void Chaos::before_wait() {
    // Relaxed: see deliver.
    if (n_late_.load(std::memory_order_relaxed) == 0 || Unobserved::is_marked())
        return;
    const Unobserved mark;
    Random& random = my_random();
    if (random.one_in(2) && spend(waited_ns_, kDueNs / 2, kWaitShare))
        return;  // run() lets them leave when they are due
    for (;;) {
        {
            const os::Locked lock(lock_);
            if (!deliver_one(random, {}))
                return;
        }
        if (random.one_in(4))
            pause(random);
    }
}

void Chaos::enter_collective(const base::Call&) {
    if (Random& random = my_random(); random.one_in(8))
        pause(random);
}

// --- The own thread

void* Chaos::run_thread(void* it) {
    static_cast<Chaos*>(it)->run();
    return nullptr;
}

void Chaos::run() {
    constexpr uint64_t kLookNs = 500000;
    if (progress::become_thread_of)
        progress::become_thread_of(pe_);
    const Unobserved mark;
    Random random(seed_);
    for (;;) {
        const uint32_t seen = work_.value.load(std::memory_order_acquire);  // pairs with Chaos::keep and Chaos::stop
        if (stopping_.load(std::memory_order_acquire))                      // pairs with Chaos::stop
            return;
        // Relaxed: an operation that becomes late behind this look has advanced the count.
        if (n_late_.load(std::memory_order_relaxed) == 0) {
            work_.sleep(seen + 1, nullptr);
            continue;
        }
        os::sleep_ns(kLookNs);
        {
            const os::Locked lock(lock_);
            for (const uint64_t now = os::now_ns(); deliver_one(random, {.due_ns = now});) continue;
        }
        // In a session it may gather, and the thread that posted it may wait already for the answer.
        if (progress::wait_policy->before_wait)
            progress::wait_policy->before_wait();
    }
}

void Chaos::stop(const char* function) {
    complete(function, nullptr, nullptr, 0);
    stopping_.store(true, std::memory_order_release);  // pairs with Chaos::run
    work_.advance();
    pthread_join(thread_, nullptr);
    has_thread_ = false;
}

}  // namespace heddle::checking
