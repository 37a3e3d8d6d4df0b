#include "collective/sync_all.h"

#include "operations/check.h"
#include "progress/wait_policy.h"
#include "sync/meeting.h"

#include <bit>

namespace heddle::collective {

namespace {

// A gate at the distance at which no prefetcher joins two of them.
struct alignas(128) PaddedGate {
    sync::Gate gate;
};

// The shared area: this, then n_pes x rounds PaddedGates, those of one PE together.
struct Shared {
    sync::Meeting meeting;  // of the central algorithm

    PaddedGate* gates() { return reinterpret_cast<PaddedGate*>(this + 1); }
};

int rounds_of(int n_pes) {
    return static_cast<int>(std::bit_width(static_cast<unsigned>(n_pes - 1)));
}

}  // namespace

// This PE's side.
struct Sync {
    Shared* shared;
    int pe;
    int n_pes;
    int rounds;
    bool central;
    uint32_t count;  // barriers begun
};
HEDDLE_PE_LOCAL Sync* sync_state = nullptr;

namespace {

void sync_central(const char* function, Sync& sync) {
    sync::Meeting& meeting = sync.shared->meeting;
    meeting.arrive(static_cast<uint32_t>(sync.n_pes), sync.count);
    progress::wait_for_gate(function, meeting.released, sync.count);
}

void sync_dissemination(const char* function, Sync& sync) {
    PaddedGate* gates = sync.shared->gates();
    for (int round = 0; round < sync.rounds; ++round) {
        const int partner = (sync.pe + (1 << round)) % sync.n_pes;
        gates[partner * sync.rounds + round].gate.open(sync.count);
        // A partner may be one barrier ahead, never two: it cannot end the next one without this PE.
        progress::wait_for_gate(function, gates[sync.pe * sync.rounds + round].gate, sync.count);
    }
}

}  // namespace

size_t sync_shared_bytes(int n_pes) {
    return sizeof(Shared) + static_cast<size_t>(n_pes) * static_cast<size_t>(rounds_of(n_pes)) * sizeof(PaddedGate);
}

void start_sync(char* shared, int pe, int n_pes, SyncAlgorithm algorithm, uint32_t node_cores) {
    const bool crowded = static_cast<uint32_t>(n_pes) > node_cores;
    const bool central = algorithm == SyncAlgorithm::kCentral || (algorithm == SyncAlgorithm::kAuto && crowded);
    const uint32_t count = sync_state ? sync_state->count : 0;  // goes on after finalize and init
    if (!sync_state)
        sync_state = new Sync;  // lives as long as the process
    *sync_state = {reinterpret_cast<Shared*>(shared), pe, n_pes, rounds_of(n_pes), central, count};
}

void sync_all(const char* function) {
    operations::require_running(function);
    Sync& sync = *sync_state;
    ++sync.count;
    if (sync.central)
        sync_central(function, sync);
    else
        sync_dissemination(function, sync);
}

void barrier_all(const char* function) {
    // The quiet: on-node operations are stores ahead of the gate's seq_cst store, which is ordered behind them.
    sync_all(function);
}

}  // namespace heddle::collective
