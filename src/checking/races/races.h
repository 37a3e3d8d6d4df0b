// Races (HEDDLE_RACES=1): conflicting accesses to symmetric memory by calls that nothing orders. A report has both
// calls, and what is missing; the job goes on (docs/decisions/0048). This is the observer that tells the detector what
// the program does: the detector in this node's memory, where PE 0 shares it, or else the one in PE 0's node.
//
// Threads: any.
#pragma once

#include "checking/races/accesses.h"
#include "checking/races/objects.h"
#include "checking/races/pauses.h"
#include "checking/races/race_detector.h"
#include "checking/races/remote_detector.h"
#include "checking/races/report.h"
#include "operations/observer.h"

#include <pthread.h>
#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace heddle::checking::races {

class Races : public operations::Observer {
  public:
    // Null, and *reason has the cause, when races cannot be looked for in this job.
    static Races* make(std::string* reason);
    // In PE 0, when no PE looks for races any more: ends the thread that serves PEs of other nodes.
    static void stop_serving();
    // The threads of this PE's that serve them.
    static uint32_t threads();

    bool issue(const operations::Operation& operation) override;
    void order(const char* function, shmem_ctx_t ctx) override;
    void complete(const char* function, shmem_ctx_t ctx, const int* pes, size_t npes) override;
    bool is_complete(shmem_ctx_t ctx) override;
    void look() override {}
    void enter_collective(const base::Call&) override {}
    void stop(const char*) override;

    void see(const void* address, size_t bytes) override;
    bool try_last_write(const void* address, size_t bytes, int* pe, base::CallText* call) override;
    void complete_request() override;
    void post_collective(const base::Call&) override;
    void post_buffer(const base::Call& call, const void* buffer, size_t bytes, bool writes) override;
    void take_lock(const long* lock) override;
    void give_lock(const long* lock) override;
    void begin_collective(const team::Team& team, int root) override;
    void end_collective(const team::Team& team) override;
    void allocate(const base::Call& call, const void* block, size_t bytes) override;
    void free(const base::Call& call, const void* block) override;
    void use_buffer(const base::Call& call, const void* buffer, size_t bytes, bool writes) override;
    void hand_out_address() override;
    void access(const void* address, size_t bytes, heddle_access_kind kind, const void* caller,
                heddle_recent* recent) override;

  private:
    struct Entered {
        CollectiveKey key;
        bool takes;
        pthread_t thread;
        std::vector<RaceDetector::AtOnce> buffers;  // in use until this PE leaves
    };

    explicit Races(char* memory);  // of the search; null: it is on another node
    static void report_to(void* races, const Race& race) { static_cast<Races*>(races)->report(race); }
    static void take_blocks(void* races, const std::vector<Accesses::OfBlock>& blocks);
    void report(const Race& race);
    bool is_repeated(const Race& race);

    bool find(const void* address, size_t* position) const;
    enum class Block { kOwn, kPrivate, kOther };
    Block block_of(const void* address) const;
    // In the node's memory: the PE whose memory it is, or -1.
    int find_owner(const void* address, size_t* position) const;
    // What the program has told of its accesses happens before what it does next.
    void take_accesses();
    // The program is to tell of accesses to buffers in use.
    void watch_buffers();
    void put(const operations::Operation& operation, const base::Call& call, Flow flow);
    // True when a value comes back with the call that the program may take for a flag; *position: where it is.
    bool get(const operations::Operation& operation, const base::Call& call, Flow flow, size_t* position);
    bool update(const operations::Operation& operation, const base::Call& call, Flow flow, size_t* position);
    // The operation's part in this PE's memory.
    void use_buffer(const operations::Operation& operation, const base::Call& call, Flow flow);

    const std::unique_ptr<DetectorLink> link_;  // null: not needed
    const std::unique_ptr<RaceDetector> detector_;
    Accesses accesses_;
    Pauses pauses_;
    pthread_mutex_t watch_lock_ = PTHREAD_MUTEX_INITIALIZER;  // of watch_buffers: the last hull is the newest
    std::vector<int> pe_of_slot_;
    Objects objects_;
    pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;  // of what follows
    std::map<uint64_t, Entered> entered_;               // by team: the collective that this PE is in
    bool learns_by_requests_ = false;                   // a fetch or a collective is under one
    std::array<uint64_t, 256> found_ = {};              // the last races, by their calls
};

}  // namespace heddle::checking::races
