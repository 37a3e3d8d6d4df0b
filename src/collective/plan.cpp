#include "collective/plan.h"

#include "base/error.h"
#include "collective/exchange.h"
#include "collective/nonblocking.h"

namespace heddle::collective {

using base::describe;
using base::fatal;

HEDDLE_PE_LOCAL base::PePointer<PlanPool> plan_pool;
constinit thread_local Plan* recording = nullptr;

namespace {

Plan& require_plan(const Call& call, shmemx_plan_t handle) {
    Plan* const plan = plan_pool->find(handle);
    if (!plan)
        fatal(call.function, "plan %p is none of this PE, in %s: right would be a handle of shmemx_plan_begin",
              static_cast<void*>(handle), describe(call).data());
    if (!plan->alive.load(std::memory_order_acquire))  // pairs with collective::begin_plan and collective::free_plan
        fatal(call.function, "plan %p is used in %s, but has ended in %s", static_cast<void*>(handle),
              describe(call).data(), describe(plan->ended).data());
    return *plan;
}

Plan& require_recorded(const Call& call, shmemx_plan_t handle) {
    Plan& plan = require_plan(call, handle);
    if (!plan.is_recorded)
        fatal(call.function, "plan %p is still being recorded, since %s: right would be shmemx_plan_end before",
              static_cast<void*>(handle), describe(plan.recorded).data());
    return plan;
}

// Acquire: pairs with collective::start_plan; what the collectives did is seen.
bool is_over(const Plan& plan) {
    return plan.under_way.load(std::memory_order_acquire) == 0;
}

}  // namespace

void Plan::clear() {
    for (const Part& part : parts) delete part.exchange;
    parts.clear();
}

void start_plans() {
    delete plan_pool;
    plan_pool = new PlanPool;
    recording = nullptr;
}

void begin_plan(const Call& call, shmemx_plan_t* plan) {
    operations::require_running(call.function);
    operations::require_pointer(call.function, "plan", plan);
    if (recording)
        fatal(call.function,
              "in %s this thread records a plan already, since %s: right would be shmemx_plan_end before",
              describe(call).data(), describe(recording->recorded).data());
    Plan* const made = plan_pool->take();
    if (!made)
        fatal(call.function, "no memory for a plan");
    made->is_recorded = false;
    made->recorded = call;
    made->started = {};
    made->alive.store(true, std::memory_order_release);  // pairs with collective::require_plan
    recording = made;
    *plan = reinterpret_cast<shmemx_plan_t>(made);
}

void end_plan(const Call& call, shmemx_plan_t* plan) {
    operations::require_running(call.function);
    operations::require_pointer(call.function, "plan", plan);
    if (!recording)
        fatal(call.function, "this thread records no plan: right would be shmemx_plan_begin before");
    if (&require_plan(call, *plan) != recording)
        fatal(call.function, "plan is %p in %s, but this thread records another one, since %s: right would be that one",
              static_cast<void*>(*plan), describe(call).data(), describe(recording->recorded).data());
    recording->is_recorded = true;
    recording = nullptr;
}

int start_plan(const Call& call, shmemx_plan_t handle, shmemx_request_t* req) {
    operations::require_running(call.function);
    operations::require_pointer(call.function, "req", req);
    Plan& plan = require_recorded(call, handle);
    if (recording)
        fatal(call.function, "this thread records a plan, since %s: right would be shmemx_plan_end before",
              describe(recording->recorded).data());
    if (!is_over(plan))
        fatal(
            call.function,
            "plan %p is started in %s while it is under way, since %s: right would be to wait for that request before",
            static_cast<void*>(handle), describe(call).data(), describe(plan.started).data());
    for (const Plan::Part& part : plan.parts)
        if (team_of(part.call, part.team).lives != part.life)
            fatal(call.function, "the team of %s, which plan %p has recorded, was destroyed",
                  describe(part.call).data(), static_cast<void*>(handle));
    plan.started = call;
    plan.under_way.store(static_cast<uint32_t>(plan.parts.size()), std::memory_order_relaxed);
    for (const Plan::Part& part : plan.parts) {
        const Call posted = {part.call.function, call.caller};
        if (part.exchange)
            part.exchange->tell_of_post(posted);
        const auto run = [&plan, part = &part](const Call& here, team::Team& instance) {
            part->run(part->work.object(), here, instance);
            plan.under_way.fetch_sub(1, std::memory_order_release);  // pairs with collective::is_over
        };
        post(posted, part.team, req, part.bytes, run, part.before, part.exchange);
    }
    return 0;
}

void free_plan(const Call& call, shmemx_plan_t* plan) {
    operations::require_running(call.function);
    operations::require_pointer(call.function, "plan", plan);
    if (*plan == SHMEMX_PLAN_NULL)
        return;
    Plan& freed = require_recorded(call, *plan);
    progress::engine->wait_until(call.function, [&] { return is_over(freed); });
    freed.clear();
    freed.ended = call;
    freed.alive.store(false, std::memory_order_release);  // pairs with collective::require_plan
    plan_pool->give(&freed);
    *plan = SHMEMX_PLAN_NULL;
}

}  // namespace heddle::collective
