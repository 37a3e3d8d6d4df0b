// Plan: non-blocking collectives that a thread has recorded in place of posting them, to be started any number of times
// (docs/decisions/0060). A started plan is its collectives, posted in the order of their recording. What an exchange
// learns in its first run (collective/exchange.h) stays with its plan.
//
// Threads: one records a plan; one at a time starts or frees it, as it would post.
#pragma once

#include "base/call.h"
#include "base/pe_local.h"
#include "progress/inline_payload.h"
#include "progress/sequence.h"
#include "sync/pool.h"
#include "team/team.h"

#include <heddle/request.h>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace heddle::collective {

class Exchange;

// What precedes the posting of a collective, on the thread that posts.
using BeforePosting = void (*)(const base::Call& call);

class Plan {
  public:
    struct Part {
        base::Call call;
        shmem_team_t team = nullptr;
        uint32_t life = 0;  // of the team
        size_t bytes = 0;
        BeforePosting before = nullptr;
        Exchange* exchange = nullptr;  // the plan's own; null: another collective
        void (*run)(const void* work, const base::Call& call, team::Team& instance) = nullptr;
        progress::InlinePayload<progress::Sequence::kPayloadBytes> work;
    };

    ~Plan() { clear(); }
    void clear();

    sync::PoolLink link;
    std::atomic<bool> alive{false};
    bool is_recorded = false;  // recording has ended
    std::vector<Part> parts;   // stay where they are once the plan is recorded
    std::atomic<uint32_t> under_way{0};
    base::Call recorded, started, ended;
};

using PlanPool = sync::Pool<Plan, 8>;
extern HEDDLE_PE_LOCAL base::PePointer<PlanPool> plan_pool;  // this PE's

// Sets up the pool of this PE. Plans of an earlier init are gone.
void start_plans();

// The plan into which this thread's non-blocking collectives go; null: none.
extern constinit thread_local Plan* recording;

// The interface. Any mistake ends the PE with a message.
void begin_plan(const base::Call& call, shmemx_plan_t* plan);
void end_plan(const base::Call& call, shmemx_plan_t* plan);
int start_plan(const base::Call& call, shmemx_plan_t plan, shmemx_request_t* req);
void free_plan(const base::Call& call, shmemx_plan_t* plan);

}  // namespace heddle::collective
