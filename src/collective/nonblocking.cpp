#include "collective/nonblocking.h"

#include "base/error.h"
#include "base/settings.h"
#include "fabric/network.h"

namespace heddle::collective {

progress::Sequence& sequence_of(team::Team& team) {
    if (!team.sequence) {
        team.sequence = new progress::Sequence(*progress::engine);  // lives as long as the team's object: for ever
        progress::engine->add(*team.sequence);
    }
    if (team.span && !team.stream_sets.load(std::memory_order_relaxed) &&
        !fabric::network->make_stream_set(team.stream_sets, nullptr))
        base::fatal("network", "no memory for a stream set");
    return *team.sequence;
}

// Between nodes alone, the network's service thread goes on with them when something comes. On the node a short one has
// done at once what others wait for (but in a checked run, where they first compare their calls), and ends with a look
// of its own thread: waking another would cost more.
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
