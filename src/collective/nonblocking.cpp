#include "collective/nonblocking.h"

#include "base/error.h"
#include "base/settings.h"
#include "fabric/network.h"

namespace heddle::collective {

progress::Sequence& sequence_of(team::Team& instance) {
    if (!instance.sequence) {
        // Kept as long as the instance's object: until the process ends.
        instance.sequence = new progress::Sequence(*progress::engine);
        progress::engine->add(*instance.sequence);
    }
    if (instance.span && !instance.stream_sets.first.load(std::memory_order_relaxed) &&
        !fabric::network->make_stream_set(instance.stream_sets, nullptr))
        base::fatal("network", "no memory for a stream set");
    return *instance.sequence;
}

// What is sent to other nodes takes the sender's time: the copy, the system call, and what the kernel does in it. On
// the node a poster only publishes, and others copy. docs/decisions/0065.
bool begins_in_background(const team::Team& instance, size_t bytes) {
    return instance.span && progress::engine->takes_over(bytes);
}

// With one member on each node the network's service thread continues the operation when something arrives. A short
// operation on the node has at once done what other members wait for. One poll of its own thread then completes it,
// which is cheaper than waking another thread. Not in a checked run, where the members compare their calls first.
void leave_to_background(const team::Team& instance, size_t bytes, bool has_steps) {
    constexpr size_t kShortBytes = 16 * 1024;
    if (instance.state.size() == 1)
        return;
    const bool is_short = bytes <= kShortBytes && !has_steps &&
                          instance.state.barrier_algorithm != team::BarrierAlgorithm::kDissemination &&
                          instance.sequence->under_way() == 1 && !instance.span && !base::settings.check;
    if (!is_short)
        progress::engine->request_background(!instance.span);
}

}  // namespace heddle::collective
