// The messages and puts of an InternodeStep, as operations on the network. Tests have another network in place of this
// file (tests/unit/collective/internode/many_nodes_test.cpp).
#include "base/slow_event.h"
#include "collective/internode/internode_step.h"
#include "fabric/network.h"
#include "os/ticks.h"
#include "progress/fiber.h"
#include "progress/wait_policy.h"

namespace heddle::collective {

void InternodeStep::post(int to_rank, const fabric::ControlKey& key, const void* data, size_t bytes) const {
    base::note_slow_event(base::SlowEvent::kControlMessage, coll_.pe(to_rank), bytes);
    operations::remote_control(issue(), coll_.pe(to_rank), key, data, bytes);
}

size_t InternodeStep::take(int from_rank, const fabric::ControlKey& key, void* data, size_t bytes) const {
    size_t length = 0;
    fabric::ControlInbox::Stray stray;
    const progress::AtStep here(coll_.team.span->word_of(number_));
    // A fiber may go on in another thread.
    uint64_t begin_ticks = base::find_slow_event_sink() && !progress::Fiber::current() ? os::ticks_now() : 0;
    progress::wait_for_stores(coll_.call.function, coll_.team.span, [&] {
        return fabric::network->control_inbox().take(key, coll_.pe(from_rank), data, bytes, &length, &stray) ||
               stray.pe >= 0;
    });
    base::end_slow_event(base::SlowEvent::kStep, &begin_ticks, coll_.pe(from_rank));
    if (stray.pe >= 0)
        end_by(stray);
    return length;
}

void InternodeStep::go(int to_rank) const {
    operations::remote_go(issue(), coll_.pe(to_rank));
}

void InternodeStep::put(int to_rank, void* dest, const void* source, size_t bytes) const {
    if (bytes != 0)
        operations::remote_put(issue(), dest, source, bytes, coll_.pe(to_rank));
}

void InternodeStep::deliver(int to_rank, uint32_t round, void* dest, const void* source, size_t bytes) const {
    if (bytes == 0)
        return tell_put(to_rank, round, 0);
    operations::remote_put_control(issue(), dest, source, bytes, coll_.pe(to_rank), key(round, 0));
    go(to_rank);
}

void InternodeStep::done(int to_rank) const {
    if (sharer() < sharers())  // no other thread has put anything
        operations::remote_put_done(issue(), coll_.pe(to_rank));
}

}  // namespace heddle::collective
