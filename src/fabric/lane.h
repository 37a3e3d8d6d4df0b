// Lane: what one thread sends through one context: a stream to each PE that it has sent to. Its use needs no lock and
// no locked instruction; threads meet below, on the wire, once per message and not per operation.
//
// Threads: streams are used by the lane's thread alone (PRIVATE and SERIALIZED contexts have one lane, used by one
// thread at a time); their state is read by any.
#pragma once

#include "fabric/stream.h"
#include "sync/pool.h"

#include <atomic>

namespace heddle::fabric {

struct alignas(128) Lane {
    sync::PoolLink link;
    Producer producer;
    Wire* wire = nullptr;
    std::atomic<Stream*>* streams = nullptr;  // of all PEs: zeroes until one is used
    std::atomic<Stream*> used{nullptr};       // a list of those that there are
    Lane* next = nullptr;                     // of the same context

    // The stream to pe, made on first use.
    Stream& to(int pe) {
        Stream* const stream = streams[pe].load(std::memory_order_relaxed);
        return __builtin_expect(stream != nullptr, 1) ? *stream : open(pe);
    }

    // Calls visit for every stream, as long as it returns true; false when one did not. Any thread.
    template <class Visit>
    bool all(Visit visit) const {
        for (Stream* stream = used.load(std::memory_order_acquire); stream; stream = stream->next_of_lane)
            if (!visit(*stream))
                return false;
        return true;
    }

  private:
    Stream& open(int pe);
};

}  // namespace heddle::fabric
