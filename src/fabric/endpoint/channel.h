// Channel: one path of a PE to the network, with everything that is sent and received on it. A thread that polls takes
// the channel's lock for the moment and does all there is to do: it sends what streams have published, lets the
// transport move bytes, applies what has arrived, and acknowledges. No thread ever waits for the lock: a thread that
// does not get it leaves its work to the holder.
//
//     streams to send   a stack that any thread pushes to (Stream::queued says whether a stream is in it)
//     inbound streams   in up to three lists: to go on with, waiting for another rail, with an ack to send
//     peers             in up to two lists: with something to send in this turn, with delayed acks
//
// Nothing is left behind. A thread that pushes a stream, or wakes a channel, then tries to get the lock. The holder
// gives the lock back, and then looks at the stack and at woken_ again. Both sides are seq_cst (tests/model/idle.pml
// and rail_watermarks.pml). A poll does so at most kTurns times. What other threads go on to queue is then left to the
// service thread, or without one to the next poll (NetworkCallbacks::on_left, tests/model/turns.pml). Where the service
// thread sleeps on the transport's descriptor, a poll that has moved something arms the transport again: what now waits
// in it for room at another PE may have no other event.
//
// Threads: any thread polls, and queues a stream to be sent; everything else runs under the lock.
#pragma once

#include "base/tsan.h"
#include "fabric/endpoint/address_book.h"
#include "fabric/endpoint/control_inbox.h"
#include "fabric/endpoint/inbound.h"
#include "fabric/endpoint/intrusive_list.h"
#include "fabric/endpoint/peer.h"
#include "fabric/endpoint/stream.h"
#include "fabric/liveness/loss.h"
#include "fabric/protocol/gathered.h"
#include "fabric/protocol/message.h"
#include "fabric/transport/transport.h"
#include "progress/wait_policy.h"

#include <atomic>
#include <cstddef>

namespace heddle::fabric {

// The neighbours of a PE in the ring of the nodes' first PEs (fabric/liveness/heartbeat.h); -1: the PE is not in the
// ring.
struct Ring {
    int before = -1;
    int behind = -1;
};

// What channels call of the job.
struct JobCallbacks {
    // The address blob of a PE: its size, or 0 with a message in error. May block for a while; any thread, several at
    // once (AddressBook).
    size_t (*address_blob_of)(int pe, char* address_blob, char* error, size_t error_bytes) = nullptr;
    // A PE does not answer any more, on no rail or not on that rail. They end the process, or return where this PE does
    // not need the answer.
    void (*lost)(int pe, Loss loss, const char* reason) = nullptr;
    void (*rail_lost)(int rail, int pe, Loss loss, const char* reason) = nullptr;
    // Something has moved that a thread may wait for.
    void (*notify)(void* waiting) = nullptr;
    // Runs fibers whose wait is over: behind a poll or an arm that moved something, without the channel's lock. May be
    // null.
    void (*run_ready)(void* waiting) = nullptr;
    void* waiting = nullptr;  // the argument of notify and run_ready
};

// What channels call of their network.
struct NetworkCallbacks {
    void* owner = nullptr;  // the argument of the others
    // The stream of one of this PE's stream sets to pe, or null.
    Stream* (*stream_of)(void* owner, uint32_t stream_set, int pe) = nullptr;
    // How far the streams of a stream set of pe are complete here. Called where there are several rails.
    RailWatermarks* (*watermarks_of)(void* owner, uint32_t stream_set, int pe) = nullptr;
    // This PE's address blob: its size.
    size_t (*own_address_blob)(void* owner, char* address_blob) = nullptr;
    // A poll has ended at its bound, with something left to do. May be null: the next poll does it.
    void (*on_left)(void* owner) = nullptr;
    // Behind the caller's queue: many threads of this PE wait and poll, one of them soon. May be null: no.
    bool (*polls_soon)(void* owner) = nullptr;
    // The service thread arms the channels, or sleeps on their descriptors. May be null: there is none.
    bool (*is_asleep)(void* owner) = nullptr;
    // A kHeartbeat has come.
    void (*on_heartbeat)(void* owner, const Header& header, const char* body, size_t bytes) = nullptr;
};

// What the channels of a PE on one rail have in common.
struct ChannelConfig {
    const TransportApi* api = nullptr;
    Transport* transport = nullptr;
    Regions regions;     // of this PE
    uint64_t token = 0;  // of the job
    ControlInbox* control_inbox = nullptr;
    AddressBook* addresses = nullptr;  // of all channels of the PE
    int pe = 0;
    int n_pes = 0;
    const progress::WaitPolicy* policy = nullptr;  // of the threads that wait
    Ring ring;
    bool is_native = false;             // some PEs may be put to and got from directly
    bool parts_large = false;           // large data goes over an endpoint of its own (docs/decisions/0054)
    size_t full_bytes = kMessageBytes;  // of a full message; 1: every record goes by itself
    int rail = 0;
    int n_rails = 1;
    // The rails of this node that must not be used any more, a bit each. Null: the job ends when one is lost.
    std::atomic<uint32_t>* lost_rails = nullptr;
    JobCallbacks job;
    NetworkCallbacks network;  // set by the network
};

class Channel {
  public:
    // What a poll does for other threads has a bound: so many turns under the lock, each of so many rounds.
    static constexpr int kTurns = 4, kRounds = 8;
    static constexpr int kLook = -1;  // no PE: a poll that looks at the network

    Channel(const ChannelConfig& config, int number);
    ~Channel();
    Channel(const Channel&) = delete;
    Channel& operator=(const Channel&) = delete;
    // The channels of the same number on all rails, this one among them; called before anything is sent.
    void set_rails(Channel* const* channels) {
        HEDDLE_INVARIANT(channels[config_.rail] == this);
        rails_ = channels;
    }

    // --- Any thread.

    // The stream has something to send. This call looks at it, where it gets the lock. Otherwise the holder does, or
    // the thread that the holder leaves it to.
    void send(Stream* stream) {
        queue(stream);
        poll();
    }
    // The stream has something to send with the next poll.
    void queue(Stream* stream);
    // Behind queue: another thread polls soon, and the caller need not.
    bool is_polled_soon() const {
        return config_.network.polls_soon && config_.network.polls_soon(config_.network.owner);
    }
    bool is_crowded() const { return config_.policy && config_.policy->is_crowded(); }
    // Does what there is to do, unless another thread does. True when anything was moved. sends_to: of a producer that
    // calls for a record to that PE. Where several streams to the PE then have messages in flight, the call only sends.
    // Otherwise a producer of several streams, used in turns, would find the ack of one in the call for the next: each
    // stream would stay idle, and each record leave by itself.
    bool poll(int sends_to = kLook);
    // Polls until ready() holds. line: what ready() looks at; function: for the message that shows where a PE waits.
    template <class Ready>
    void wait(const char* function, const void* line, Ready ready) {
        progress::wait_for_stores(function, line, ready);
    }
    // Sends a message without a stream, unless another thread polls. The body must stay as it is for ever.
    void send_single(int pe, Header header, const char* body, size_t bytes);
    // For a thread that is about to sleep on the transport's descriptor: true when nothing is left to do, and the
    // descriptor becomes readable when there is. again: even where that holds since the last arm.
    bool arm(bool again = true);
    // Ahead of the first stream to pe, by its producer: the PE's address is known, or the PE is lost. May block for a
    // while, in which all other threads go on.
    void find_address(int pe) const;
    int number() const { return number_; }
    // Large data has been posted, asked for or announced (1), or is through (-1). Relaxed: a hint for the service
    // thread.
    void count_large(int by) { large_.fetch_add(static_cast<uint32_t>(by), std::memory_order_relaxed); }
    bool has_large() const { return large_.load(std::memory_order_relaxed) != 0; }
    // Bytes of the bodies that have been asked for, and of those that have arrived. Hints, too.
    uint64_t asked() const { return asked_.load(std::memory_order_relaxed); }
    uint64_t arrived() const { return arrived_.load(std::memory_order_relaxed); }
    // An ack is delayed; a hint for the service thread.
    bool ack_pending() const { return ack_pending_.load(std::memory_order_relaxed); }

    // --- Under the lock.

    // Fills in what all headers have, and sends. `large`, done and argument: as TransportApi::send takes them. Nothing
    // is sent to a PE that is lost.
    void send_message(int pe, Header header, const char* body, size_t bytes, bool large, Done done, void* argument);
    const ChannelConfig& config() const { return config_; }
    const Regions& regions() const { return config_.regions; }
    // The inbound stream has something to acknowledge, or records to go on with.
    void queue(Inbound* inbound) { to_progress_.add(*inbound); }
    // The ack of the inbound stream leaves in this turn, together with what else goes to its PE.
    void ack(Inbound& inbound);
    // The ack of the inbound stream travels with the next records to its PE, or alone with the next poll. A control
    // message is often answered at once, and the answer takes the ack along. Where kMaxBusy acks to the PE would be
    // delayed, all leave in this turn: its further streams wait for one (fabric/endpoint/peer.h).
    void delay_ack(Inbound& inbound);
    // The stream has a short message to send: in this turn, or when its PE has acknowledged something
    // (fabric/endpoint/peer.h). Stream::send_short is called then.
    void gather(Stream& stream);
    // Adds records of the stream to the message, which leaves first where it has no room.
    void add_records(GatheredMessage* message, const Stream& stream, const SendRing::Message& records);
    // A stream to pe has become busy (1), or no longer is (-1).
    void count_busy(int pe, int by);
    // pe has acknowledged something of a stream.
    void on_ack_from(int pe);
    // The inbound stream waits for streams on other rails, until one of them wakes this channel.
    void wait_for_others(Inbound* inbound) { waiting_.add(*inbound); }
    // What waits here for other rails may go on. A poll of a channel of this number does it before it ends. Any thread.
    // Pairs with Channel::is_due, Channel::poll_woken_once and Channel::progress_woken.
    void wake() { woken_.store(true, std::memory_order_seq_cst); }
    // The stream has gone idle (SendRing::go_idle): its Stream::send is called again behind a heavy fence, before the
    // lock is given up.
    void finish_idle_of(Stream& stream) { going_idle_.add(stream); }
    // Wakes the channel with this number on another rail.
    void wake(int rail) {
        HEDDLE_INVARIANT(rails_ && rail >= 0 && rail < config_.n_rails);
        rails_[rail]->wake();
    }
    // The rail must not be used any more. What is sent on it all the same leaves on another one.
    bool is_lost() const {
        return config_.lost_rails && config_.n_rails > 1 &&
               (config_.lost_rails->load(std::memory_order_relaxed) >> config_.rail & 1) != 0;
    }
    // The endpoint to pe, made on first use; null: there can be none, and the PE is lost. Does not block: the address
    // is known to find_address or from the PE's kConnect. But for heartbeats, whose channel the service thread has to
    // itself.
    Endpoint* endpoint_of(int pe);
    // The body of a large message that pe has announced: as TransportApi::receive and refuse. The done of receive calls
    // count_arrived.
    void receive(int pe, Arrival* arrival, char* to, size_t bytes, Done done, void* argument);
    void count_arrived(size_t bytes) { arrived_.store(arrived() + bytes, std::memory_order_relaxed); }
    void refuse(Arrival* arrival);
    // As in TransportApi, with the endpoint of the PE.
    bool is_native(int pe);
    void put(int pe, Address to, const char* from, size_t bytes, Done done, void* argument);
    void get(int pe, Address from, char* to, size_t bytes, Done done, void* argument);
    // Ends this PE: pe has sent what no PE of this job would send. header: of the message.
    [[noreturn]] void protocol_error(int pe, const char* what) const;
    [[noreturn]] void protocol_error(const Header& header, const char* what) const;

    // A large reply on its way into place.
    struct LargeReply {
        Stream* stream;
        uint64_t number;  // as Stream::on_large_reply takes it
        char* to;
        size_t bytes;
    };

    // --- The transport's events.

    void arrived(const Header& header, const char* body, size_t bytes);
    void announced(const Header& header, size_t bytes, Arrival* arrival);

  private:
    // Looks first: threads that wait do not write to the holder's line. The look is seq_cst as the exchange is: what
    // this thread has pushed before is seen behind the unlock that ends what it found. Both pair with Channel::unlock.
    bool try_lock() {
        if (locked_.load(std::memory_order_seq_cst) || locked_.exchange(true, std::memory_order_seq_cst))
            return false;
        tsan::look_away();
        return true;
    }
    void unlock() {
        HEDDLE_INVARIANT(locked_.load(std::memory_order_relaxed));  // by this thread
        tsan::look_back();
        // Pairs with Channel::try_lock and Channel::queue: either side sees the other.
        locked_.store(false, std::memory_order_seq_cst);
    }
    // Streams are queued, or the channel is woken. seq_cst: pairs with Channel::queue and Channel::wake.
    bool is_due() const {
        return to_send_.load(std::memory_order_seq_cst) != nullptr || woken_.load(std::memory_order_seq_cst);
    }
    bool poll_alone(int sends_to);
    void poll_woken();
    bool poll_woken_once();
    void leave_rest() const;
    void run_ready(bool moved) const;
    bool work(int sends_to);
    bool stays_armed();
    bool progress_woken();
    void dispatch(const Header& header, const char* body, size_t bytes);
    bool send_queued();
    bool progress_queued();
    bool take_delayed_acks();
    bool finish_idle();
    bool send_short();
    bool send_short(int pe);
    Endpoint* connect(int pe);
    Endpoint* large_endpoint_of(int pe);
    void send_to(Endpoint* to, int pe, Header header, const char* body, size_t bytes, bool large, Done done,
                 void* argument);
    void send_gathered(int pe, GatheredMessage* message);
    void piggyback_ack(int pe, Header* header);
    Inbound& inbound_of(int pe, uint32_t stream_set);
    Inbound*& make_place(Peer& peer, uint32_t stream_set) const;
    bool is_from_job(const Header& header);
    Stream& stream_of(const Header& header, uint32_t stream_set) const;
    LargeReply place_of(const Header& header, size_t bytes) const;
    void acknowledged(const Header& header, uint32_t stream_set, uint64_t position) const;

    const ChannelConfig& config_;
    const int number_;
    Peer* peers_;  // indexed by PE; memory that reads as zeroes until a peer is used
    alignas(128) std::atomic<bool> locked_{false};
    alignas(128) std::atomic<Stream*> to_send_{nullptr};     // the stack of streams to send
    std::atomic<bool> woken_{false};                         // by another rail's channel: waiting_ may go on
    Channel* const* rails_ = nullptr;                        // null: there is one
    IntrusiveList<Stream, &Stream::going_idle> going_idle_;  // empty while nobody has the lock
    IntrusiveList<Inbound, &Inbound::waiting> waiting_;
    IntrusiveList<Inbound, &Inbound::to_progress> to_progress_;
    IntrusiveList<Peer, &Peer::to_send> peers_to_send_;  // empty while nobody has the lock
    IntrusiveList<Peer, &Peer::delayed_acks> delayed_acks_;
    std::atomic<bool> ack_pending_{false};
    std::atomic<uint32_t> large_{0};               // under way
    std::atomic<uint64_t> asked_{0}, arrived_{0};  // written under the lock
    bool is_settled_ = false;                      // the last round of work has moved nothing
    bool armed_ = false;                           // the transport's channel, for the service thread's sleep
    bool refused_ = false;                         // a message from outside of the job has been reported: it is once
};

}  // namespace heddle::fabric
