// Detector: one PE's part in the search for races (docs/decisions/0048). It gives each operation a time, and
// keeps its accesses in the shadow of their owner. It learns what other PEs have done where the program makes an order.
// Threads: those of its PE; a lock. The threads of a PE are one to it: what orders them is not the library's.
#pragma once

#include "base/call.h"
#include "checking/races/collective_clocks.h"
#include "checking/races/contributions.h"
#include "checking/races/histories.h"
#include "checking/races/knowledge.h"
#include "checking/races/pending_buffers.h"
#include "checking/races/places.h"
#include "checking/races/shadow.h"

#include <pthread.h>
#include <memory>
#include <vector>

namespace heddle::checking::races {

// How this PE has last learned of another one's operations.
enum class Edge : uint8_t { kNone, kWait, kRead, kLock, kCollective };

// A race, to be reported.
struct Race {
    Mark earlier, later;    // of them, `later` is this PE's access
    int owner = 0;          // of the memory; -1: this PE's private memory
    size_t position = 0;    // the first that both have
    size_t bytes = 0;       // of the later access, from position on
    bool is_known = false;  // the program has ordered the earlier call before the later one, but not its completion
    Edge edge = Edge::kNone;
    bool is_buffer = false;         // the earlier one is of a local buffer
    const void* address = nullptr;  // of the private memory
};

// An access to the symmetric memory of a PE.
struct Access {
    int owner = 0;
    size_t position = 0;
    size_t bytes = 0;
    bool writes = false;
    bool is_atomic = false;
    Completion completion = Completion::kAtReturn;
    Flow flow = Flow::kDefault;
};

class Detector {
  public:
    // memory: zeroed, bytes(...) of them, the same for all PEs. positions: bytes of symmetric memory of a PE.
    Detector(char* memory, size_t positions, int pe, int n_pes, void (*report)(void* to, const Race& race), void* to);
    ~Detector();
    Detector(const Detector&) = delete;
    Detector& operator=(const Detector&) = delete;
    static size_t bytes(size_t positions, int n_pes);

    Places& places() { return places_; }
    char* shared_words() { return shared_words_; }  // kSharedBytes for the report
    static constexpr size_t kSharedBytes = 64 * 1024;

    void access(const Access& access, const base::Call& call);
    // access, of several, of which none is before another.
    struct AtOnce {
        Access access;
        base::Call call;
    };
    void access_at_once(const std::vector<AtOnce>& accesses);
    // access, of a buffer in the collective that this PE has entered: who learns of its entry knows of the access.
    void access_in_collective(const Access& access, const base::Call& call);
    // access, of an atomic or signal that others may wait for.
    void update(const Access& access, const base::Call& call, bool is_signal = false);
    // A local buffer of a non-blocking operation, in use until its flow is quiet; and a local buffer of any call.
    void hold(const void* buffer, size_t bytes, bool writes, Flow flow, const base::Call& call);
    void touch(const void* buffer, size_t bytes, bool writes, const base::Call& call);
    PendingBuffers::Hull held();

    // A wait, a test, or an operation that returns a value, has seen the words of owner.
    void see(int owner, size_t position, size_t bytes, Edge edge);
    // The last write of which the detector has been told to this PE's words, as far as that is known: by which PE, and
    // the call. False: unknown. Takes no lock for longer than a look, and waits for none.
    bool try_last_write(size_t position, size_t bytes, int* pe, base::CallText* call) const;
    void quiet(Flow flow);
    void quiet_all();
    void release_buffers(Flow flow);  // the buffers alone may be reused
    void fence(Flow flow);

    // A lock's word is that of PE 0.
    void release_lock(size_t position);
    void take_lock(size_t position);

    void enter_collective(const CollectiveKey& key, bool gives);
    void leave_collective(const CollectiveKey& key, bool takes);

    // A value has been seen of which is not known who wrote it.
    void see_unknown();
    // From here on all that other PEs have done counts as known: where they have met unseen by this detector.
    void learn_all();
    // Memory is shared in ways that the detector does not see (shmem_ptr): a wait without a known writer learns all.
    void expect_stores();

  private:
    struct SharedHead;
    Time tick();
    Mark mark_of(const Access& access, const base::Call& call, Time time);
    void record(const Access& access, const base::Call& call, Time time);
    void learn(int from, Time at, Flow flow, bool is_signal, bool is_here, Edge edge, bool is_latest = false);
    void learn_latest(int from, Edge edge);
    void learn_everything(Edge edge);
    void publish();
    void report_later(const Race& race) { found_.push_back(race); }
    class Locked;

    Knowledge known_;
    Histories histories_;
    CollectiveClocks collectives_;
    Contributions& contributions(int owner) { return *contributions_[static_cast<size_t>(owner)]; }
    std::vector<std::unique_ptr<Contributions>> contributions_;
    std::vector<std::unique_ptr<Shadow>> shadows_;
    Places places_;
    PendingBuffers pending_;
    std::vector<Edge> edges_;
    SharedHead* head_ = nullptr;
    char* shared_words_ = nullptr;
    Time time_ = 0;
    bool has_learned_ = false;
    std::vector<Race> found_;
    void (*report_)(void* to, const Race& race);
    void* to_;
    pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
};

// The number of the calling thread in its process, from 0.
uint8_t thread_number();

}  // namespace heddle::checking::races
