// Network: what a PE has of its job's network, where the job has one: its rails with their transports and channels, the
// stream sets of its contexts, and the thread that serves other PEs while this one computes.
//
// A rail is a network interface, or several that the transport's library deals with itself, with a transport and
// channels of its own. Channel w of a rail talks to channel w of the same rail of other PEs. A stream set has the
// channels of one number, one on each rail, for good: of that number whose stream sets in use weigh least at first use.
// That is one with the fewest PRIVATE contexts; among these, with the fewest SERIALIZED ones, then of threads.
//
// A channel number is in use once a stream set has it, or something has come on it. Threads of the program poll no
// other channel, so channels that nobody sends on cost them nothing. The service thread looks at all others, before
// each sleep, in which they stay armed, and after each nap (docs/decisions/0079).
//
// Threads that wait in the library poll a PE's channels in use; otherwise the service thread does, which sleeps on the
// transports' descriptors. While other threads poll, the service thread keeps away: it looks again after a tenth of a
// millisecond, then more and more rarely, up to a millisecond. Where the program's threads have all cores, they have 2
// ms for their next poll (docs/decisions/0056). So it costs nothing while nothing comes, and a PE that computes answers
// after one wake-up. What a poll leaves at its bound (Channel::kTurns) wakes it. While non-blocking collectives are
// under way, the service thread keeps away only from threads that wait, and comes back when they have ended waiting
// (take_over). The policy of progress may let the service thread spin, or leave the channels to the program. Or it lets
// the service thread watch. While something is under way, and a core is left, that polls transports that are not armed.
// Between two polls it rests on the line of take_over (docs/decisions/0062).
//
// Threads: init and finalize open, start, stop and close; any thread polls, and makes and returns stream sets.
#pragma once

#include "base/pe_local.h"
#include "fabric/endpoint/channel.h"
#include "fabric/endpoint/stream_set.h"
#include "fabric/interrupt_moderation.h"
#include "fabric/liveness/heartbeat.h"
#include "fabric/multirail/rail_watermarks.h"
#include "fabric/multirail/retransmitting_transport.h"
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

// How the service thread polls the channels of stream sets; kNone: not at all. Heartbeats are served in any case.
// kWatches needs a WaitPolicy::monitor.
enum class Service : int { kSleeps, kWatches, kSpins, kNone };

struct NetworkOptions {
    Options transport;                  // of every rail; its devices are not read
    std::vector<std::string> rails;     // by rail: its devices, as in Options
    uint64_t heartbeat_timeout_ns = 0;  // a node that is silent for longer is lost; 0: never
    const char* plugin = "";            // the file of the transport
};

class Network {
  public:
    // Loads the transport and opens the channels. Null with the reason in error.
    static std::unique_ptr<Network> open(const NetworkOptions& options, const ChannelConfig& config, char* error,
                                         size_t error_bytes);
    ~Network();
    Network(const Network&) = delete;
    Network& operator=(const Network&) = delete;

    // Writes the address blob of this PE, with all rails; returns its size, 0 when it does not fit.
    size_t address_blob(char* address_blob) const;
    const char* name() const { return api_->name; }
    // Other PEs may put to this PE's memory, and get from it, without its CPU.
    bool is_native() const { return rails_.front()->config.is_native; }

    // The service thread runs from start to stop. False when no thread can be made.
    bool start();
    void stop();
    // All PEs have what they wait for, and peers may end. From here on, until start, a PE that does not answer is no
    // failure. stop tells the neighbour that this PE is silent. Relaxed: Network::stop orders the store for the service
    // thread.
    void begin_leaving() { leaving_.store(true, std::memory_order_relaxed); }

    // How the service thread polls from now on.
    void set_service(Service service);
    // What the service thread does between two looks, now, if something is under way: "epoll", "spin", the name of a
    // monitor, or "none". Any thread. Relaxed: a hint for reports.
    const char* service_name() const;
    // Ends the nap of the service thread: threads of the program have stopped polling, and something is under way.
    void take_over() { away_.advance(); }

    // Takes a stream set for the list. thread: the only one that uses it, this one; null: one thread at a time. Null
    // when there is no memory.
    StreamSet* make_stream_set(StreamSetList& list, const void* thread, Spread spread = Spread::kAnyOrder,
                               Weight weight = Weight::kOther);
    // Gives all stream sets of a list back; all their streams are quiet, and no thread uses them.
    void return_stream_sets(StreamSetList& list);

    // Every stream set that there is, used or not.
    template <class Visit>
    void for_each_stream_set(Visit visit) {
        for (const auto& pool : channel_pools_) pool->stream_sets.for_each(visit);
    }
    // Whether other stream sets in use have the channels of this one, and its messages take turns with theirs.
    bool shares_channels(const StreamSet& stream_set);

    // Moves what can be moved on the channels; true when something was.
    bool poll();
    ControlInbox& control_inbox() { return control_inbox_; }
    int rails() const { return static_cast<int>(rails_.size()); }
    // Of each rail: those that stream sets take, which is all but where spread_over has said less. Relaxed: init has
    // set them.
    int channels() const { return own_channels_.load(std::memory_order_relaxed); }
    // Stream sets that are made from now on take the first `count` channels, or all that there are. Init calls.
    void spread_over(int count);
    // The bytes of send rings that streams have on loan.
    size_t lent() const { return ring_slab_.lent(); }

  private:
    struct Rail {
        Network* network = nullptr;
        int number = 0;
        Transport* transport = nullptr;  // the rail's own, under what retransmits
        ChannelConfig config;
        ChannelConfig heartbeat_config;                  // of the heartbeat channel: nobody is notified
        std::vector<std::unique_ptr<Channel>> channels;  // of the stream sets, by number
        // The channel behind those of the stream sets; null: this PE is not in the ring of nodes.
        std::unique_ptr<Channel> heartbeat_channel;
        std::unique_ptr<Heartbeat> heartbeat;
        bool is_watched = true;  // its channels' descriptors are in the epoll; the service thread's

        bool is_lost() const { return channels.front()->is_lost(); }
    };

    // The channels of one number, on all rails, and the stream sets that have them. Stream set i of that pool has
    // the number i * n + c, where n channels are open.
    struct ChannelPool {
        std::vector<Channel*> channels;  // by rail
        sync::Pool<StreamSet, 16> stream_sets;
        uint64_t weight = 0;  // of its stream sets in use; under weights_lock_
        // A stream set has it, or something has come. Relaxed: a thread that sends sets it before, and polls itself;
        // what comes is found by the service thread.
        std::atomic<bool> is_used{false};
    };

    Network() = default;
    bool load(const char* plugin, char* error, size_t error_bytes);
    bool open_rail(const NetworkOptions& options, const ChannelConfig& config, char* error, size_t error_bytes);
    void open_channels(Rail& rail, int count);
    void retransmit(const ChannelConfig& config, int n_rails, int n_channels);
    bool prepare_service(char* error, size_t error_bytes);
    bool prepare(StreamSet& stream_set, size_t channel);
    size_t weigh_in(Weight weight);
    void weigh_out(size_t number, Weight weight);
    StreamSet* take_stream_set(size_t number);
    static constexpr uint32_t kWakeup = UINT32_MAX;  // in the epoll, the wake-up's descriptor
    static void* run_service(void* network);
    void serve();
    enum class Use : int { kUsed, kUnused, kAny };
    bool poll_channels(Use use);
    bool keeps_away(uint64_t* nap_ns, bool* looks);
    bool watch();
    bool has_event() const;
    bool nap_while_data_comes();
    void sleep_until_event();
    void on_left();
    bool polls_soon() const;
    // Of a channel that the service thread has armed, under the channel's lock, which orders the look behind the store
    // of Network::sleep_until_event. False in its sleep: it has been woken.
    bool is_asleep() const { return asleep_.load(std::memory_order_relaxed); }
    // Relaxed, all: a hint for the service thread. polls_ is written once for each of its looks, however many poll.
    void count_poll() {
        if (const uint32_t polls = polls_.load(std::memory_order_relaxed);
            polls == seen_polls_.load(std::memory_order_relaxed))
            polls_.store(polls + 1, std::memory_order_relaxed);
    }
    void see_polls() { seen_polls_.store(polls_.load(std::memory_order_relaxed), std::memory_order_relaxed); }
    void wait_for_heartbeats();
    int longest_sleep() const;
    bool any_channel(bool (Channel::*holds)() const) const;
    void unwatch_lost_rails();
    void wake_up();
    void clear_wakeup_descriptor();
    bool arm();
    bool has_heartbeats() const { return rails_.front()->heartbeat != nullptr; }
    void tick(bool woken);

    const TransportApi* api_ = nullptr;                        // of the rails' own transports
    std::unique_ptr<RetransmittingTransport> retransmitting_;  // null: the job ends when a rail is lost
    ControlInbox control_inbox_;
    AddressBook addresses_;
    void* library_ = nullptr;
    int n_pes_ = 0;
    const progress::WaitPolicy* policy_ = nullptr;
    std::vector<std::unique_ptr<Rail>> rails_;
    RingSlab ring_slab_;  // of the rings of all streams, which go before it
    std::vector<std::unique_ptr<ChannelPool>> channel_pools_;
    std::atomic<int> own_channels_{1};
    std::mutex weights_lock_;                                        // taken once a stream set
    std::atomic<StreamSet*>* stream_set_table_ = nullptr;            // by number
    std::mutex watermarks_lock_;                                     // taken once a stream
    std::map<std::pair<int, uint32_t>, RailWatermarks> watermarks_;  // by PE and its stream set
    // Advanced by threads of the program that poll, once the service thread has seen the last advance.
    std::atomic<uint32_t> polls_{0}, seen_polls_{0};
    pthread_t service_ = {};
    std::atomic<bool> serving_{false};  // relaxed: who polls without it polls more
    uint64_t tick_ns_ = 0;
    uint32_t turn_ = 0;              // of away_, when the service thread last looked
    uint64_t polled_ns_ = 0;         // when the service thread last saw that other threads poll
    uint64_t moved_ns_ = 0;          // when a poll of the service thread last moved something
    uint64_t pending_since_ns_ = 0;  // when watch() first found something under way, after it had found nothing
    bool is_pending_ = false;        // what it found last
    InterruptModeration moderation_;
    std::atomic<Service> service_kind_{Service::kSleeps};
    std::atomic<bool> asleep_{false};  // the service thread arms the channels, or sleeps on their descriptors
    sync::EventCount away_{};          // advances when the service thread must end its nap
    std::atomic<bool> stopping_{false};
    std::atomic<bool> leaving_{false};
    int wakeup_descriptor_ = -1;  // an eventfd: written by stop and set_service
    int descriptors_ = -1;        // an epoll of that one and of the channels' descriptors

    friend struct NetworkEvents;
};

extern HEDDLE_PE_LOCAL base::PePointer<Network> network;  // this PE's; null where load and store reach all PEs

}  // namespace heddle::fabric
