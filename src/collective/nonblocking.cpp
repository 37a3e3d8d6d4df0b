#include "collective/nonblocking.h"

#include "base/error.h"
#include "base/settings.h"
#include "fabric/network.h"

namespace heddle::collective {

progress::Sequence& sequence_of(team::Team& team) {
    if (!team.sequence) {
        // Kept as long as the team's object: until the process ends.
        team.sequence = new progress::Sequence(*progress::engine);
        progress::engine->add(*team.sequence);
    }
    if (team.span && !team.stream_sets.first.load(std::memory_order_relaxed) &&
        !fabric::network->make_stream_set(team.stream_sets, nullptr))
        base::fatal("network", "no memory for a stream set");
    return *team.sequence;
}

// With one member on each node the network's service thread continues the operation when something arrives. A short
// operation on the node has at once done what other members wait for. One poll of its own thread then completes it,
// which is cheaper than waking another thread. Not in a checked run, where the members compare their calls first.
void leave_to_background(const team::Team& team, size_t bytes) {
    constexpr size_t kShortBytes = 16 * 1024;
    if (team.state.size() == 1)
        return;
    const bool is_short = bytes <= kShortBytes &&
                          team.state.barrier_algorithm != team::BarrierAlgorithm::kDissemination &&
                          team.sequence->under_way() == 1 && !team.span && !base::settings.check;
    if (!is_short)
        progress::engine->request_background(!team.span);
}

}  // namespace heddle::collective
