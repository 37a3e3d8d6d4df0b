// Root object of a PE: all that the library keeps for it, in the order in which init assembles it. A stage uses only
// what the stages above it have made (init.cpp, kAssembly); finalize goes through the stages in reverse.
//
// The layers own their parts and reach them by their own names, as thin as a global (base/pe_local.h). Pe has a pointer
// to each, so that `print *heddle::runtime::this_pe.engine` in a debugger shows what a name of any layer would. A part
// is null before its stage. Which globals there are beside these: docs/decisions/0029.
//
// Threads: the one in init or finalize writes.
#pragma once

#include "base/pe_local.h"

#include <cstdint>
#include <string>
#include <vector>

namespace heddle::base {
struct Counters;
struct Settings;
}  // namespace heddle::base
namespace heddle::bootstrap {
struct Job;
}
namespace heddle::sync {
struct PeWakeups;
}
namespace heddle::progress {
struct WaitPolicy;
class Engine;
}  // namespace heddle::progress
namespace heddle::memory {
struct NodeMemory;
struct Symmetric;
class Allocator;
}  // namespace heddle::memory
namespace heddle::team {
struct TeamSegments;
struct Teams;
}  // namespace heddle::team
namespace heddle::collective {
struct Machine;
}
namespace heddle::fabric {
class Network;
}
namespace heddle::context {
struct Contexts;
}

namespace heddle::runtime {

// What the program has called since the library was last started.
struct Calls {
    bool start_pes = false;
    const char* init = "";  // shmem_init or shmem_init_thread, as it was called first
    int inits = 0;
    int finalizes = 0;

    int references() const { return inits + start_pes - finalizes; }
};

struct Pe {
    enum class Stage : int { kNothing, kJoined, kWaits, kMapped, kHasHeap, kHasTeams, kConnected, kRunning };

    Stage stage = Stage::kNothing;
    Calls calls;
    // kJoined: the environment is read, and the job knows this PE.
    base::Settings* settings = nullptr;
    bootstrap::Job* job = nullptr;
    base::Counters* counters = nullptr;
    // kWaits: it can wait, and make progress. Lives as long as the process, as does what kMapped makes.
    progress::WaitPolicy* wait_policy = nullptr;
    progress::Engine* engine = nullptr;
    // kMapped: the node's memory, and who is reached where.
    memory::NodeMemory* node_memory = nullptr;
    memory::Symmetric* symmetric = nullptr;
    // kHasHeap: from one init to its finalize.
    memory::Allocator* allocator = nullptr;
    // kHasTeams
    team::TeamSegments* team_segments = nullptr;
    sync::PeWakeups* wakeups = nullptr;
    team::Teams* teams = nullptr;
    collective::Machine* machine = nullptr;
    // kConnected: all PEs of the job have come as far. Null where load and store reach them all; lives as long as the
    // process.
    fabric::Network* network = nullptr;
    std::vector<std::string>* rails = nullptr;  // the devices of each of its rails
    uint32_t network_threads = 0;               // of this process, while there is a network
    // kRunning: operations are allowed.
    context::Contexts* contexts = nullptr;

    // The next stage is reached: its parts are there, and all those above it.
    void reach(Stage next);
    // The stage is over; those above it are not.
    void leave(Stage last);
};

extern HEDDLE_PE_LOCAL Pe this_pe;

}  // namespace heddle::runtime
