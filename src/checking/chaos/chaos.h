// Chaos (HEDDLE_CHAOS=SEED): operations are as late and as unordered as the standard allows, and the threads of a PE
// are delayed, by decisions drawn from a seed. Programs that lack a quiet, a fence or a wait then go wrong on one node,
// too (docs/decisions/0047).
//
// What may stay with its origin, in parts of whole elements: operations from which nothing comes back, non-blocking
// gets and fetches, and operations under a request. A part leaves at a later call of the PE, when the draw says so, in
// an order that is drawn for each target. It leaves at the latest
//     behind a fence      before what is issued behind it on the same context to the same PE
//     in a quiet, a barrier, the end of a context or team, finalize
//     when a thread of the PE waits, for a store, a message, a collective or a request: at half of the waits
//     after kDueNs, by a thread of chaos's own, which makes progress at the other waits, and while the program computes
// The data of a put with signal leaves with the signal, ahead of it.
//
// Threads: any. One lock holds all: an operation on a PRIVATE context may leave from another thread.
#pragma once

#include "checking/chaos/late_operations.h"
#include "checking/chaos/random.h"
#include "operations/observer.h"
#include "sync/event_count.h"

#include <pthread.h>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace heddle::checking {

class Chaos : public operations::Observer {
  public:
    // seed: of the job. pe: in the world. Starts a thread.
    Chaos(uint64_t seed, int pe);
    ~Chaos() override;
    Chaos(const Chaos&) = delete;
    Chaos& operator=(const Chaos&) = delete;

    bool issue(const operations::Operation& operation) override;
    void order(const char* function, shmem_ctx_t ctx) override;
    void complete(const char* function, shmem_ctx_t ctx, const int* pes, size_t npes) override;
    bool is_complete(shmem_ctx_t ctx) override;
    void look() override;
    void enter_collective(const base::Call& call) override;
    void stop(const char* function) override;

    // The calling thread is about to wait: what is late leaves, or is left to chaos's own thread.
    void before_wait();
    // Threads that chaos has started.
    uint32_t threads() const { return has_thread_ ? 1 : 0; }

  private:
    // What may be late at the same time; beyond it, operations leave at once.
    static constexpr size_t kMostOperations = 512, kMostBytes = size_t{4} << 20;
    static constexpr uint64_t kParts = 4;        // of one operation
    static constexpr uint64_t kDueNs = 4000000;  // a drawn share of it
    static constexpr uint64_t kLongestPauseNs = 5000000;
    static constexpr uint64_t kPauseShare = 1;          // a PE is paused as long as it computes
    static constexpr uint64_t kWaitShare = 16;          // of that time, a PE waits longer, as others do for it
    static constexpr uint64_t kFreePauseNs = 50000000;  // paused in any program, beside that

    bool is_late(Random& random, const operations::Operation& operation) const;
    bool keep(Random& random, const operations::Operation& operation);
    void keep_part(Random& random, const LateOperation& whole, size_t begin, size_t end);
    void deliver(LateOperation& late);
    void deliver_now(const operations::Operation& operation);
    bool deliver_one(Random& random, const Selection& selection);
    void deliver_some(Random& random);
    bool spend(std::atomic<uint64_t>& spent_ns, uint64_t length_ns, uint64_t share);
    void pause(Random& random);
    Random& my_random();
    void run();
    static void* run_thread(void* it);

    const uint64_t seed_;  // of this PE
    const uint64_t begin_ns_;
    pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
    LateOperations late_;
    std::atomic<uint32_t> n_late_{0};  // as in late_, for a look without the lock
    uint64_t phase_ = 0;               // changes which targets are late
    std::atomic<uint64_t> threads_{0};
    std::atomic<uint64_t> paused_ns_{0};
    std::atomic<uint64_t> waited_ns_{0};
    sync::EventCount work_{};  // advances when something is late that was not, and at the end
    std::atomic<bool> stopping_{false};
    bool has_thread_ = false;
    pthread_t thread_{};
    void* pe_ = nullptr;  // see progress::pe_of_thread
};

}  // namespace heddle::checking
