// All teams of a PE as they lie in its memory; for team.cpp, and for debuggers (runtime/debugger_view.cpp). Threads: as
// team.h says.
#pragma once

#include "team/team.h"

#include <pthread.h>
#include <atomic>
#include <cstddef>

namespace heddle::team {

struct Chunk {
    static constexpr int kTeams = 32;
    Team teams[kTeams];
    Chunk* next = nullptr;
};

struct ActiveSet {
    static constexpr size_t kBuckets = 64;
    Team team;
    int log_stride = 0;
    ActiveSet* next = nullptr;
};

struct Teams {
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    Team world, shared;
    Chunk* chunks = nullptr;
    Team* free = nullptr;
    std::atomic<ActiveSet*> active_sets[ActiveSet::kBuckets] = {};
    int pe = 0;
    const int* nodes = nullptr;  // of each PE; null: the job has one node
    Members on_node;             // all PEs of this PE's node
    int peer_tables = 0;
};

}  // namespace heddle::team
