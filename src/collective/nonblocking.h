// Non-blocking collectives under a request: the blocking collectives, carried out on the fiber of their team's sequence
// (docs/decisions/0016). Both thus have the same algorithms and the same bits in results. The collectives of a team
// take its instances in turns, in the order of posting; those of different instances are under way beside each other
// (docs/decisions/0059). A blocking one waits for all that were posted before.
//
// Threads: one thread at a time posts for a team, as the specification asks of collectives.
#pragma once

#include "base/counters.h"
#include "collective/collective_call.h"
#include "collective/plan.h"
#include "collective/sync.h"
#include "context/request.h"
#include "memory/symmetric.h"
#include "operations/check.h"
#include "operations/observer.h"
#include "operations/order.h"
#include "operations/request_fence.h"
#include "progress/engine.h"

#include <heddle/request.h>

namespace heddle::collective {

// The sequence of an instance of a team, made by its first non-blocking collective, with streams of its own if the team
// spans nodes.
progress::Sequence& sequence_of(team::Team& instance);

// bytes: of one member's data. True when the background thread, and not the poster, is to begin the collective.
bool begins_in_background(const team::Team& instance, size_t bytes);
// Wakes the background thread for what has been posted and begun, if that gains time. has_steps: other members may wait
// for what this one does after the first step, however short.
void leave_to_background(const team::Team& instance, size_t bytes, bool has_steps);

// The calling thread posts a collective of the team.
class PostingThread {
  public:
    PostingThread(const Call& call, team::Team& team) : team_(watched & kWatchThreads ? &team : nullptr) {
        if (team_)
            take_team(call, team);
    }
    ~PostingThread() { end(); }
    PostingThread(const PostingThread&) = delete;
    PostingThread& operator=(const PostingThread&) = delete;

    void end() {
        if (team_)
            leave_team(*team_);
        team_ = nullptr;
    }

  private:
    team::Team* team_;
};

// Adds work to the plan that this thread records. exchange: of that work; becomes the plan's.
template <class Work>
void record(const Call& call, shmem_team_t handle, size_t bytes, Work work, BeforePosting before, Exchange* exchange) {
    Plan::Part& part = recording->parts.emplace_back();
    part.call = call;
    part.team = handle;
    part.life = team_of(call, handle).lives;
    part.bytes = bytes;
    part.before = before;
    part.exchange = exchange;
    part.run = [](const void* held, const Call& here, team::Team& instance) {
        (*static_cast<const Work*>(held))(here, instance);
    };
    part.work.hold(work);
}

// Posts work(call, instance), a collective of the team in that instance, to *req, behind before(call). While this
// thread records a plan: adds the work to that. exchange: that of the work, if it is one. Returns 0.
template <class Work>
int post(const Call& call, shmem_team_t handle, shmemx_request_t* req, size_t bytes, Work work,
         BeforePosting before = nullptr, Exchange* exchange = nullptr) {
    operations::require_running(call.function);
    operations::require_pointer(call.function, "req", req);
    if (__builtin_expect(recording != nullptr, 0)) {
        record(call, handle, bytes, work, before, exchange);
        return 0;
    }
    if (before)
        before(call);
    team::Team& team = team_of(call, handle);
    PostingThread thread(call, team);
    team::Team& instance = team::next_instance(call.function, team);
    if (operations::Observer* const told = operations::find_observer())
        told->post_collective(call);
    const context::Posting posting(call, req);
    operations::await_request_fence(call, *req);  // members talk through other stream sets
    context::Request* const request = context::request_to_post(call, req);
    progress::Sequence& sequence = sequence_of(instance);
    if (!request) {  // no memory for a request: complete when this returns
        thread.end();
        sequence.wait(call.function);
        work(call, instance);
        return 0;
    }
    const uint32_t side = request->post();
    const auto to_its_end = [=, in = &instance] {
        work(call, *in);
        request->complete(side);
    };
    const bool is_left = begins_in_background(instance, bytes);
    using Begin = progress::Sequence::Begin;
    base::counters->posted_collectives.add();
    if (!sequence.post(to_its_end, call.caller,
                       is_left ? Begin::kInBackground : Begin::kByPoster)) {  // no memory for an operation
        thread.end();
        sequence.wait(call.function);
        to_its_end();
        progress::engine->wake_waiters();
    }
    if (!is_left && !sequence.is_empty())
        leave_to_background(instance, bytes, exchange != nullptr);
    return 0;
}

inline int post_sync(const Call& call, shmem_team_t handle, shmemx_request_t* req) {
    return post(call, handle, req, 0, [](const Call& here, team::Team& instance) { sync(here, instance); });
}

inline void before_barrier(const Call& call) {
    operations::complete_stores();
    if (operations::Observer* const told = operations::find_observer())
        told->complete(call.function, SHMEM_CTX_DEFAULT);
}

// The quiet covers at least what was posted on the default context before this call.
inline int post_barrier(const Call& call, shmem_team_t handle, shmemx_request_t* req) {
    return post(
        call, handle, req, 0, [](const Call& here, team::Team& instance) { barrier(here, instance); }, before_barrier);
}

}  // namespace heddle::collective
