// Network: what a PE has of its job's network, where the job has one: its rails with their transports and channels, the
// stream sets of its contexts, and the thread that serves other PEs while this one computes.
//
// RailScheduler: each is a network interface, or several that the transport's library deals with itself, with a
// transport and channels of its own. Channel w of a rail talks to channel w of the same rail of the others. A stream
// set has the channels of one number.
//
// Service: all of a PE's channels are polled by whoever waits in the library, and otherwise by the service thread,
// which sleeps on the transports' descriptors. While others poll it keeps away, and looks again after a tenth of a
// millisecond, then more and more rarely, up to a millisecond; so it costs nothing while nothing comes, and a PE that
// computes answers after one wake-up. While non-blocking collectives are under way it keeps away from threads that wait
// alone, and comes back when they have ended waiting (take_over). The policy of progress may let it spin, or leave the
// channels to the program's own calls.
#pragma once

#include "base/pe_local.h"
#include "fabric/endpoint/channel.h"
#include "fabric/endpoint/stream_set.h"
#include "fabric/liveness/heartbeat.h"
#include "fabric/multirail/rail_watermarks.h"
#include "sync/pool.h"

#include <pthread.h>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace heddle::fabric {

enum class Service : int { kSleeps, kSpins, kNone };  // of the stream sets' channels; heartbeats are served in any case

struct NetworkOptions {
    Options transport;                  // of each rail, but for the devices
    std::vector<std::string> rails;     // the devices of each, as Options has them
    uint64_t heartbeat_timeout_ns = 0;  // of another node, after which it is lost; 0: never
    const char* plugin = "";            // file of the transport
};

class Network {
  public:
    // Loads the transport and opens the channels. Null with the reason in error.
    static std::unique_ptr<Network> open(const NetworkOptions& options, const ChannelConfig& config, char* error,
                                         size_t error_bytes);
    ~Network();
    Network(const Network&) = delete;
    Network& operator=(const Network&) = delete;

    // Of all rails; 0 when they do not fit.
    size_t address_blob(char* address_blob) const;
    const char* name() const { return api_->name; }
    // Others put to this PE's memory directly, or may.
    bool is_native() const { return rails_.front()->config.is_native; }

    // From here on the service thread runs; until stop. False when there can be no thread.
    bool start();
    void stop();
    // All that was sent is complete, and peers may end: that one does not answer any more is no failure from here on,
    // until start.
    void begin_leaving() { leaving_.store(true, std::memory_order_relaxed); }

    // From now on.
    void set_service(Service service);
    // The threads of the program that polled do so no more, and something is under way.
    void take_over() { away_.advance(); }

    // A stream set on the list, for this thread or (`thread` null) for one thread at a time. Null when there is no
    // memory.
    StreamSet* make_stream_set(std::atomic<StreamSet*>& list, const void* thread, Spread spread = Spread::kAnyOrder);
    // Gives all stream sets of a list back; all their streams are quiet.
    void return_stream_sets(std::atomic<StreamSet*>& list);

    // Every stream set that there is, used or not.
    template <class Visit>
    void for_each_stream_set(Visit visit) {
        stream_sets_.for_each(visit);
    }

    // Moves what can be moved on all channels; true when something was.
    bool poll();
    ControlInbox& control_inbox() { return control_inbox_; }
    int rails() const { return static_cast<int>(rails_.size()); }

  private:
    struct Rail {
        Network* network = nullptr;
        int number = 0;
        ChannelConfig config;
        ChannelConfig heartbeat_config;                  // the same, but nobody waits for a heartbeat
        std::vector<std::unique_ptr<Channel>> channels;  // of the stream sets
        // where the ring of nodes goes through this PE; the last one
        std::unique_ptr<Channel> heartbeat_channel;
        std::unique_ptr<Heartbeat> heartbeat;
    };

    Network() = default;
    bool load(const char* plugin, char* error, size_t error_bytes);
    bool open_rail(const NetworkOptions& options, const ChannelConfig& config, char* error, size_t error_bytes);
    void open_channels(Rail& rail, int count);
    bool prepare_service(char* error, size_t error_bytes);
    bool prepare(StreamSet& stream_set);
    static void* run_service(void* network);
    void serve();
    bool poll_channels();
    bool keeps_away(uint32_t* seen, uint64_t* nap_ns);
    void wait_for_heartbeats();
    int longest_sleep() const;
    void wake_up();
    void clear_wakeup_descriptor();
    bool arm();
    bool has_heartbeats() const { return rails_.front()->heartbeat != nullptr; }
    void tick(bool woken);

    const TransportApi* api_ = nullptr;
    ControlInbox control_inbox_;
    void* library_ = nullptr;
    int n_pes_ = 0;
    const progress::WaitPolicy* policy_ = nullptr;
    std::vector<std::unique_ptr<Rail>> rails_;
    std::vector<std::vector<Channel*>> channels_;  // by number, then by rail
    sync::Pool<StreamSet, 16> stream_sets_;
    std::atomic<StreamSet*>* stream_set_table_ = nullptr;            // by number
    std::mutex watermarks_lock_;                                     // taken once a stream
    std::map<std::pair<int, uint32_t>, RailWatermarks> watermarks_;  // by PE and its stream set
    std::atomic<uint32_t> polls_{0};  // by threads of the program; a count that loses some
    pthread_t service_ = {};
    bool serving_ = false;
    uint64_t tick_ns_ = 0;
    std::atomic<Service> service_kind_{Service::kSleeps};
    sync::EventCount away_{};  // moves when the service thread is to end its nap
    std::atomic<bool> stopping_{false};
    std::atomic<bool> leaving_{false};
    int wakeup_descriptor_ = -1;  // an eventfd: stop, or another kind of service
    int descriptors_ = -1;        // an epoll of it and of those of the channels

    friend struct NetworkEvents;
};

extern HEDDLE_PE_LOCAL base::PePointer<Network> network;  // this PE's; null where load and store reach all PEs

}  // namespace heddle::fabric
