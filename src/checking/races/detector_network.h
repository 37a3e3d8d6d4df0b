// The way between RemoteDetectors and the DetectorServer in PE 0: control messages of the network, on streams of their
// own. Threads: PE 0 has a thread for the server, which sleeps until a request comes. It depends on others to make
// progress, as the network's own does: under HEDDLE_PROGRESS=manual, on the calls of PE 0's program.
#pragma once

#include "checking/races/detector_server.h"
#include "checking/races/remote_detector.h"
#include "fabric/endpoint/stream_set.h"
#include "fabric/protocol/record.h"
#include "sync/event_count.h"

#include <pthread.h>
#include <atomic>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::checking::races {

// A stream set for such messages, for one thread at a time.
class DetectorStreams {
  public:
    DetectorStreams();
    ~DetectorStreams();  // waits until all has arrived
    DetectorStreams(const DetectorStreams&) = delete;
    DetectorStreams& operator=(const DetectorStreams&) = delete;

    void send(int pe, const fabric::ControlKey& key, std::string_view message);

  private:
    fabric::StreamSetList list_;
    fabric::StreamSet* stream_set_;
};

// True while a thread of this PE waits for an answer, which ends by itself.
bool is_answer_awaited();

// Of a PE on another node than PE 0.
class NetworkLink final : public DetectorLink {
  public:
    void send(std::string_view message) override;
    size_t receive(char* message, size_t bytes) override;

  private:
    DetectorStreams streams_;
};

// In PE 0, from its start until the last PE has ended its search.
class DetectorService {
  public:
    // pes: on other nodes.
    DetectorService(char* memory, size_t positions, int n_pes, std::vector<int> pes);
    ~DetectorService();
    DetectorService(const DetectorService&) = delete;
    DetectorService& operator=(const DetectorService&) = delete;

  private:
    static void* run(void* service);
    void serve();
    bool serve_all();

    DetectorServer server_;
    const std::vector<int> pes_;
    DetectorStreams streams_;
    sync::EventCount requests_{};  // advances when one has come, and at the end
    std::atomic<bool> stopping_{false};
    pthread_t thread_ = {};
};

}  // namespace heddle::checking::races
