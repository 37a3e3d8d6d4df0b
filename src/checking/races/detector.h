// Detector: one PE's part in the search for races (docs/decisions/0048). It gives each operation a time, and
// keeps its accesses in the shadow of their owner. It learns what other PEs have done where the program makes an order.
// Threads: those of its PE; a lock. The threads of a PE are one to it: what orders them is not the library's.
#pragma once

#include "checking/races/contributions.h"
#include "checking/races/histories.h"
#include "checking/races/knowledge.h"
#include "checking/races/places.h"
#include "checking/races/race_detector.h"
#include "checking/races/shadow.h"

#include <pthread.h>
#include <memory>
#include <vector>

namespace heddle::checking::races {

class Detector final : public RaceDetector {
  public:
    // memory: zeroed, bytes(...) of them, the same for all PEs. positions: bytes of symmetric memory of a PE. is_here:
    // the PE is this process; else its calls have texts that it tells (Places::add).
    Detector(char* memory, size_t positions, int pe, int n_pes, void (*report)(void* to, const Race& race), void* to,
             bool is_here = true);
    ~Detector() override;
    static size_t bytes(size_t positions, int n_pes);

    Places& places() { return places_; }
    static constexpr size_t kSharedBytes = 64 * 1024;  // for the pairs that have been reported

    void access(const Access& access, const base::Call& call) override;
    void access_at_once(const std::vector<AtOnce>& accesses) override;
    void access_blocks(const std::vector<OfBlock>& accesses) override;
    void access_in_collective(const Access& access, const base::Call& call) override;
    void update(const Access& access, const base::Call& call, bool is_signal) override;
    void hold(const void* buffer, size_t bytes, bool writes, Flow flow, const base::Call& call) override;
    void touch(const void* buffer, size_t bytes, bool writes, const base::Call& call) override;
    PendingBuffers::Hull held() override;
    bool may_hold(const void* buffer, size_t bytes) override;
    void see(int owner, size_t position, size_t bytes, Edge edge) override;
    bool try_last_write(size_t position, size_t bytes, int* pe, base::CallText* call) const override;
    void quiet(Flow flow) override;
    void quiet_to(Flow flow, int target) override;
    void quiet_all() override;
    void fence(Flow flow) override;
    void release_lock(size_t position) override;
    void take_lock(size_t position) override;
    void enter_collective(const CollectiveKey& key, bool gives) override;
    void leave_collective(const CollectiveKey& key, bool takes) override;
    void see_unknown() override;
    void learn_ended() override;
    void end() override;
    void expect_stores() override;
    void settle() override {}
    base::CallText text_of(int pe, uint32_t place) override { return places_.text(pe, place); }
    bool is_new(const base::CallText& one, const base::CallText& other) override;

  private:
    struct SharedHead;
    Time tick();
    Mark mark_of(const Access& access, const base::Call& call, Time time);
    void record(const Access& access, const base::Call& call, Time time);
    void report_later(const Conflict& conflict, const Mark& mark, int owner, size_t end);
    void learn(int from, Time at, Flow flow, bool is_signal, bool is_here, Edge edge, bool is_latest = false);
    void learn_latest(int from, Edge edge);
    void learn_everything(Edge edge);
    void publish();
    class Locked;

    Knowledge known_;
    Histories histories_;
    CollectiveClocks collectives_;
    Shadow& shadow(int owner) const { return *shadows_[static_cast<size_t>(owner)]; }
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

// The number of the calling thread in its process, from 0; and another one, where it works for a thread of another PE.
uint8_t thread_number();
void set_thread_number(uint8_t number);

}  // namespace heddle::checking::races
