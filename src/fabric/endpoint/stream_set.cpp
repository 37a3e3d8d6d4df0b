#include "fabric/endpoint/stream_set.h"

namespace heddle::fabric {

Stream& StreamSet::add_stream(int rail, int pe) {
    HEDDLE_INVARIANT(rail >= 0 && rail < n_rails && channels[rail]);
    HEDDLE_INVARIANT(!find(pe, rail));  // a stream set has one stream to a PE on a rail
    auto* stream = new Stream(*channels[rail], producer, pe);
    stream->next_of_stream_set = used.load(std::memory_order_relaxed);
    used.store(stream, std::memory_order_release);  // pairs with StreamSet::all; one producer at a time
    return *stream;
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
    all([&](Stream& stream) {
        if (!stream.rails)
            stream.order(function);
        else if (stream.rails->is_first(stream))
            stream.rails->fence(function);
        return true;
    });
}

}  // namespace heddle::fabric
