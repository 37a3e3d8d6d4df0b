// RemoteDetector: tells a DetectorServer on another node what this PE does. Requests go one way, in order; settle, and
// what returns a value, wait for the answer. So does each request behind kMostAhead bytes of others, or those of a PE
// that tells faster than the server works would pile up there. Cost: a message for each call; a round trip for each
// that waits.
// Threads: any; a lock, which is held while an answer is waited for.
#pragma once

#include "checking/races/detector_messages.h"

#include <pthread.h>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace heddle::checking::races {

// The way to the server, and back.
struct DetectorLink {
    virtual ~DetectorLink() = default;
    // Sends one message, of at most kMostBytes.
    virtual void send(std::string_view message) = 0;
    // Waits for one; returns its size, or more than `bytes` where it is longer.
    virtual size_t receive(char* message, size_t bytes) = 0;
};

class RemoteDetector final : public RaceDetector {
  public:
    // The link lives as long. report: as a Detector's.
    RemoteDetector(DetectorLink& link, int n_pes, void (*report)(void* to, const Race& race), void* to);
    ~RemoteDetector() override;

    void access(const Access& access, const base::Call& call) override;
    void access_at_once(const std::vector<AtOnce>& accesses) override;
    void access_blocks(const std::vector<OfBlock>& accesses) override;
    void access_in_collective(const Access& access, const base::Call& call) override;
    void update(const Access& access, const base::Call& call, bool is_signal) override;
    void hold(const void* buffer, size_t bytes, bool writes, Flow flow, const base::Call& call) override;
    void touch(const void* buffer, size_t bytes, bool writes, const base::Call& call) override;
    PendingBuffers::Hull held() override;
    bool may_hold(const void*, size_t) override { return true; }  // an answer would cost more
    void see(int owner, size_t position, size_t bytes, Edge edge) override;
    bool try_last_write(size_t, size_t, int*, base::CallText*) const override { return false; }
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
    void settle() override;
    base::CallText text_of(int pe, uint32_t place) override;
    bool is_new(const base::CallText& one, const base::CallText& other) override;

  private:
    static constexpr size_t kMostAhead = 128 * 1024, kOverheadBytes = 128;

    void tell(const Request& request);
    void tell_of(const Request& request, const base::Call& call);
    Answer ask(Request request, std::string_view more = {});
    // Under the lock. *races: those that answers have brought.
    void send(const Request& request, std::string_view more);
    void tell(const Request& request, std::string_view more, std::vector<Race>* races);
    Answer ask(Request request, std::string_view more, std::vector<Race>* races);
    void report(const std::vector<Race>& races) const;
    void name(const base::Call& call);
    Answer receive(std::vector<Race>* races);
    bool read(const RaceWords& words, Race* race) const;

    DetectorLink& link_;
    const int n_pes_;
    void (*report_)(void* to, const Race& race);
    void* to_;
    pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
    bool has_ended_ = false;
    size_t ahead_ = 0;                                     // bytes that were sent since the last answer
    std::set<std::pair<const char*, const void*>> named_;  // calls whose text the server has
};

}  // namespace heddle::checking::races
