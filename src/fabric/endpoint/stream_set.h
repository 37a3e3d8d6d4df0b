// Stream set: what one thread sends through one context. It has a stream to each PE that the thread has sent to, on
// each rail that it uses. Sending needs no lock and no locked instruction; threads synchronize at the channel, once per
// message and not per operation.
//
// Threads: the streams are used by the set's thread alone (PRIVATE and SERIALIZED contexts have one set, used by one
// thread at a time); any thread reads their state.
#pragma once

#include "fabric/endpoint/stream.h"
#include "fabric/multirail/rail_scheduler.h"
#include "sync/pool.h"

#include <atomic>

namespace heddle::fabric {

struct alignas(128) StreamSet {
    sync::PoolLink link;
    Producer producer;
    Spread spread = Spread::kOneRail;
    int n_rails = 1;
    int home_rail = 0;                  // the rail of the first message
    Channel* channels[kMaxRails] = {};  // indexed by rail
    // Indexed by PE; null: nothing was ever sent to that PE. Written by the producer, read by any thread.
    std::atomic<Stream*>* streams = nullptr;
    // Indexed by PE, as `streams`; null where the network has one rail.
    std::atomic<RailScheduler*>* rails = nullptr;
    std::atomic<Stream*> used{nullptr};  // the list of all streams of this set
    RailScheduler* all_rails = nullptr;  // the list of all its rail schedulers
    StreamSet* next = nullptr;           // the next stream set of the same context
    uint64_t fences_seen = 0;            // the producer's: of Context::fences, those that it has waited for

    // The stream to pe, made on first use.
    Stream& to(int pe) {
        Stream* const stream = streams[pe].load(std::memory_order_relaxed);
        return __builtin_expect(stream != nullptr, 1) ? *stream : open(pe);
    }
    // The stream to pe on that rail; null: there is none. Any thread.
    Stream* find(int pe, int rail) const;

    // Records to pe that are sent from now on are applied behind those that were sent before, whatever rails they take.
    void order(const char* function, int pe);
    // Orders the records to every PE as `order` does those to one.
    void order_all(const char* function);

    // Calls visit for every stream while it returns true; false when one call did not. Any thread. Acquire: pairs with
    // StreamSet::add_stream.
    template <class Visit>
    bool all(Visit visit) const {
        for (Stream* stream = used.load(std::memory_order_acquire); stream; stream = stream->next_of_stream_set)
            if (!visit(*stream))
                return false;
        return true;
    }
    // Calls visit for every stream to pe. Any thread.
    template <class Visit>
    void all_to(int pe, Visit visit) const {
        for (int rail = 0; rail < n_rails; ++rail)
            if (Stream* const stream = find(pe, rail))
                visit(*stream);
    }

    Stream& add_stream(int rail, int pe);

  private:
    Stream& open(int pe);
};

}  // namespace heddle::fabric
