#include "runtime/pe.h"

#include "base/counters.h"
#include "base/settings.h"
#include "bootstrap/bootstrap.h"
#include "collective/node/copy.h"
#include "context/context.h"
#include "fabric/network.h"
#include "memory/node_memory.h"
#include "memory/symmetric.h"
#include "progress/engine.h"
#include "progress/wait_policy.h"
#include "team/segment_table.h"
#include "team/team.h"

namespace heddle::runtime {

HEDDLE_PE_LOCAL Pe this_pe;

namespace {

int number(Pe::Stage stage) {
    return static_cast<int>(stage);
}

}  // namespace

void Pe::reach(Stage next) {
    HEDDLE_INVARIANT(number(next) == number(stage) + 1);  // one stage after the other
    switch (next) {
        case Stage::kNothing:
            break;
        case Stage::kJoined:
            settings = &base::settings;
            job = &bootstrap::job;
            counters = base::counters;
            HEDDLE_INVARIANT(job->n_pes > 0 && job->page != nullptr);
            HEDDLE_INVARIANT(job->pe >= 0 && job->pe < job->n_pes && job->slot < job->n_slots);
            break;
        case Stage::kWaits:
            wait_policy = progress::wait_policy;
            engine = progress::engine;
            HEDDLE_INVARIANT(wait_policy && engine && wait_policy->poll);
            break;
        case Stage::kMapped:
            node_memory = &memory::node_memory;
            symmetric = memory::symmetric;
            HEDDLE_INVARIANT(symmetric && symmetric->peers && symmetric->published && symmetric->n_pes == job->n_pes);
            break;
        case Stage::kHasHeap:
            allocator = memory::symmetric->allocator;
            HEDDLE_INVARIANT(allocator);
            break;
        case Stage::kHasTeams:
            team_segments = &team::team_segments;
            wakeups = &sync::wakeups;
            teams = team::teams;
            machine = &collective::machine;
            HEDDLE_INVARIANT(teams && wakeups->own && machine->kernels);
            HEDDLE_INVARIANT(team_segments->slot == job->slot && team_segments->n_slots == job->n_slots);
            break;
        case Stage::kConnected:
            network = fabric::network;
            HEDDLE_INVARIANT((network != nullptr) == (job->n_nodes > 1));
            break;
        case Stage::kRunning:
            contexts = context::contexts;
            HEDDLE_INVARIANT(contexts);
            break;
    }
    stage = next;
}

void Pe::leave(Stage last) {
    HEDDLE_INVARIANT(stage == last);  // in reverse, too
    if (last == Stage::kHasHeap)
        allocator = nullptr;
    stage = static_cast<Stage>(number(last) - 1);
}

}  // namespace heddle::runtime
