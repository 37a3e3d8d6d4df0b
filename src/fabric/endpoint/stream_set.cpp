#include "fabric/endpoint/stream_set.h"

#include "base/tsan.h"
#include "fabric/endpoint/channel.h"
#include "os/asymmetric_fence.h"
#include "os/locked.h"

#include <utility>

namespace heddle::fabric {

Stream& StreamSet::add_stream(int rail, int pe) {
    HEDDLE_INVARIANT(rail >= 0 && rail < n_rails && channels[rail]);
    HEDDLE_INVARIANT(!find(pe, rail));  // a stream set has one stream to a PE on a rail
    StreamGroup* group = groups.load(std::memory_order_relaxed);
    if (!group || group->is_full()) {
        group = new StreamGroup(group);
        groups.store(group, std::memory_order_release);  // pairs with StreamSet::all; one producer at a time
    }
    channels[rail]->find_address(pe);
    auto* stream = new Stream(*channels[rail], producer, pe, *group);
    group->add(stream);
    return *stream;
}

void StreamSet::delete_streams() {
    all([](Stream& stream) {
        delete &stream;
        return true;
    });
    for (StreamGroup* group = groups.load(std::memory_order_relaxed); group;) delete std::exchange(group, group->next);
    while (all_rails) delete std::exchange(all_rails, all_rails->next);
}

void StreamSet::leave(const void* thread) {
    const os::Locked locked(ends);
    if (producer.thread.load(std::memory_order_relaxed) != thread)
        return;
    producer.quota.take_back_all();
    tsan::release(this);
    // A set that is not in use any more may just go to another thread. Release: pairs with StreamSetList::take_over.
    producer.thread.compare_exchange_strong(thread, ended_thread(), std::memory_order_release,
                                            std::memory_order_relaxed);
}

StreamSet* StreamSetList::take_over(const void* thread) {
    // Acquire: pairs with Network::make_stream_set.
    for (StreamSet* stream_set = first.load(std::memory_order_acquire); stream_set; stream_set = stream_set->next) {
        const void* ended = ended_thread();
        if (stream_set->producer.thread.load(std::memory_order_relaxed) != ended ||
            // Acquire: pairs with StreamSet::leave.
            !stream_set->producer.thread.compare_exchange_strong(ended, thread, std::memory_order_acquire,
                                                                 std::memory_order_relaxed))
            continue;
        tsan::acquire(stream_set);
        os::heavy_fence();  // as in Network::make_stream_set
        return stream_set;
    }
    return nullptr;
}

Stream& StreamSet::open(int pe) {
    HEDDLE_INVARIANT(!streams[pe].load(std::memory_order_relaxed));
    if (n_rails > 1) {
        all_rails = new RailScheduler(*this, pe, all_rails);
        rails[pe].store(all_rails, std::memory_order_release);  // pairs with StreamSet::find
    } else {
        streams[pe].store(&add_stream(0, pe), std::memory_order_release);  // pairs with StreamSet::find
    }
    return *streams[pe].load(std::memory_order_relaxed);
}

Stream* StreamSet::find(int pe, int rail) const {
    // Acquire, both: pair with StreamSet::open.
    if (n_rails == 1)
        return streams[pe].load(std::memory_order_acquire);
    const RailScheduler* const all = rails[pe].load(std::memory_order_acquire);
    return all ? all->on(rail) : nullptr;
}

void StreamSet::order(const char* function, int pe) {
    Stream& stream = to(pe);
    if (stream.rails)
        stream.rails->fence(function);
    else
        stream.order(function);
}

void StreamSet::order_all(const char* function) {
    all_active([&](Stream& stream) {
        if (stream.rails)
            stream.rails->fence(function);  // for each of its streams that is active: a second one adds nothing
        else
            stream.order(function);
        return true;
    });
}

}  // namespace heddle::fabric
