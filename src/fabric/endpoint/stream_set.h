// Stream set: what one thread sends through one context. It has a stream to each PE that the thread has sent to, on
// each rail that it uses. Sending needs no lock and no locked instruction. Threads synchronize at the channel, once per
// message and not per operation, and at the ring slab, once for each loan.
//
// Threads: the streams are used by the set's thread alone (PRIVATE and SERIALIZED contexts have one set, used by one
// thread at a time); any thread reads their state. A thread that ends leaves its sets, which stay with their contexts,
// to the next threads that send through those (docs/decisions/0033).
#pragma once

#include "fabric/endpoint/stream.h"
#include "fabric/multirail/rail_scheduler.h"
#include "os/clock.h"
#include "sync/pool.h"

#include <pthread.h>
#include <sched.h>
#include <atomic>

namespace heddle::fabric {

// How much of a channel a stream set asks for. One PRIVATE context weighs more than all SERIALIZED ones that there can
// be, and one of those more than all others (kMaxStreamSets).
enum class Weight : uint64_t { kOther = 1, kSerialized = uint64_t{1} << 20, kPrivate = uint64_t{1} << 40 };

struct alignas(128) StreamSet {
    sync::PoolLink link;
    Producer producer;
    int channel = 0;  // the number of its channels
    Weight weight = Weight::kOther;
    Spread spread = Spread::kOneRail;
    int n_rails = 1;
    int home_rail = 0;                  // the rail of the first message
    Channel* channels[kMaxRails] = {};  // indexed by rail
    // Indexed by PE; null: nothing was ever sent to that PE. Written by the producer, read by any thread.
    std::atomic<Stream*>* streams = nullptr;
    // Indexed by PE, as `streams`; null where the network has one rail.
    std::atomic<RailScheduler*>* rails = nullptr;
    std::atomic<StreamGroup*> groups{nullptr};         // the list of the groups of all streams of this set
    RailScheduler* all_rails = nullptr;                // the list of all its rail schedulers
    StreamSet* next = nullptr;                         // the next stream set of the same context
    pthread_mutex_t ends = PTHREAD_MUTEX_INITIALIZER;  // of the thread's end, and of the return to the network
    uint64_t fences_seen = 0;  // the producer's: of Context::fences, those that it has waited for

    // The stream to pe, made on first use.
    Stream& to(int pe) {
        Stream* const stream = streams[pe].load(std::memory_order_relaxed);
        return __builtin_expect(stream != nullptr, 1) ? *stream : open(pe);
    }
    // The stream to pe on that rail; null: there is none. Any thread.
    Stream* find(int pe, int rail) const;

    // Records to pe that are sent from now on are applied behind those that were sent before, whatever rails they take.
    void order(const char* function, int pe);
    // Orders the records to every PE as `order` does those to one: of the streams that are active, behind which alone
    // there is something to order.
    void order_all(const char* function);

    // Calls visit for every stream while it returns true; false when one call did not. Any thread. Acquire: pairs with
    // StreamSet::add_stream.
    template <class Visit>
    bool all(Visit visit) const {
        for (const StreamGroup* group = groups.load(std::memory_order_acquire); group; group = group->next)
            if (!group->all(visit))
                return false;
        return true;
    }
    // As all, for the streams that have something outstanding.
    template <class Visit>
    bool all_active(Visit visit) const {
        for (const StreamGroup* group = groups.load(std::memory_order_acquire); group; group = group->next)
            if (!group->all_active(visit))
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

    // What gathers behind messages in flight, or in a session, leaves with the next poll: the producer is about to
    // wait. Cost where nothing gathers: two loads.
    void flush() const {
        if (producer.n_gathering.load(std::memory_order_relaxed) != 0 || producer.may_batch())
            all_active([](Stream& stream) {
                if (!stream.is_flushed())
                    stream.flush();
                return true;
            });
    }
    // The producer is about to wait. Where it has left a record to the next poll, others run ahead of that.
    void begin_wait() {
        flush();
        if (producer.expected_wait.has_posted() && producer.expected_wait.begin(os::now_ns()))
            sched_yield();
    }
    Stream& add_stream(int rail, int pe);
    // The thread, which is this one, ends: if the stream set is its own, another thread may take it over.
    void leave(const void* thread);
    // Ends the streams and what belongs to them. No thread uses the stream set any more.
    void delete_streams();

  private:
    Stream& open(int pe);
};

// The stream sets of one context.
struct StreamSetList {
    std::atomic<StreamSet*> first{nullptr};
    std::atomic<uint32_t> n_active{0};  // streams of theirs that have something outstanding (StreamGroup)

    std::atomic<bool> batches{false};  // a session is open that lets records gather (SHMEM_CTX_SESSION_BATCH)

    // False: all that this thread knows to be posted is complete, and its sources may be reused. Acquire: pairs with
    // StreamGroup::mark and StreamGroup::clear.
    bool is_active() const { return n_active.load(std::memory_order_acquire) != 0; }
    // The stream set of that thread; null: there is none. Acquire: pairs with Network::make_stream_set.
    StreamSet* of(const void* thread) const {
        StreamSet* stream_set = first.load(std::memory_order_acquire);
        while (stream_set && stream_set->producer.thread.load(std::memory_order_relaxed) != thread)
            stream_set = stream_set->next;
        return stream_set;
    }
    // A stream set whose thread has ended, for this thread, with all that is outstanding; null: there is none.
    StreamSet* take_over(const void* thread);
};

}  // namespace heddle::fabric
