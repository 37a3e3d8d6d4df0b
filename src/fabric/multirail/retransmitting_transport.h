// Retransmitting transport: a transport that loses no message while one rail of several is left. It stands between a
// PE's channels and the transports of its rails, and has their interface (TransportApi), so that channels know nothing
// of it. Used only with HEDDLE_RAIL_LOSS=continue.
//
//   sending     Each message is numbered and kept until the other PE has it (fabric/multirail/retransmit_queue.h).
//               When its rail is lost, all kept messages leave again over the first rail that is left, the oldest
//               first.
//   a lost rail Its own transport is not called any more, not even to close an endpoint: UCX says farewell there on
//               connections that take no more bytes, and waits until they do. What the transport holds stays as it is.
//   receiving   A message is passed on when its number is the next one of its sender and rail, whatever rail it has
//               come on, and to the channel of its own rail.
//   large       A large message travels as a small one, with a mark in its header, and is announced on arrival.
//
// Threads: what belongs to one channel of one rail (Link) is used under that channel's lock. Links of other rails hand
// it messages under a mutex, and wake its channel.
#pragma once

#include "fabric/liveness/loss.h"
#include "fabric/multirail/retransmit_queue.h"
#include "fabric/protocol/message.h"
#include "fabric/transport/transport.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace heddle::fabric {

class RetransmittingTransport {
  public:
    struct Config {
        const TransportApi* api = nullptr;  // of the rails' transports
        uint64_t token = 0;                 // of the job
        int n_pes = 0;
        int n_rails = 1;
        int n_channels = 1;  // of each rail; a channel with a higher number is not served
        const std::atomic<uint32_t>* lost_rails = nullptr;  // a bit for each
        // pe sends on another rail than that one, which this PE has not lost: it sets the bit.
        void (*rail_lost)(int rail, int pe, Loss loss, const char* reason) = nullptr;
        // The endpoint of the channel to pe, made on first use; null: there can be none. Under the channel's lock.
        Endpoint* (*endpoint_of)(void* owner, int channel, int pe) = nullptr;
        // The channel is polled soon, by whoever polls another one of its number. Any thread.
        void (*wake)(void* owner, int channel) = nullptr;
    };

    explicit RetransmittingTransport(const Config& config) : config_(config) {}
    ~RetransmittingTransport();
    RetransmittingTransport(const RetransmittingTransport&) = delete;
    RetransmittingTransport& operator=(const RetransmittingTransport&) = delete;

    // The functions for the transports that add_rail returns.
    static const TransportApi& api();
    // The next rail, for its channels: over its own transport. events: for messages that are passed on; their owner is
    // that of endpoint_of and wake.
    Transport* add_rail(Transport* inner, const Events& events);

    // Events of a rail's own transport, from within progress of that channel.
    void arrived(int rail, int channel, const Header& header, const char* body, size_t bytes);
    void announced(int rail, int channel, const Header& header, Arrival* arrival);

  private:
    struct Functions;
    struct Link;
    struct Peer {
        explicit Peer(int pe) : queue(pe) {}
        RetransmitQueue queue;
        Endpoint* inner = nullptr;  // null: not connected yet, or the rail is lost
    };
    // A message of another link whose rail is lost, to be sent here; or one for this link that has come on another
    // rail.
    struct Stray {
        int pe;
        Header header;
        std::vector<char> body;
        Link* leaves_on = nullptr;
    };
    struct LargeArrival {
        Link* link;
        const char* body;
        size_t bytes;
        std::vector<char> copy;  // of the body, when it was not taken at once
    };
    struct Link {
        std::vector<std::unique_ptr<Peer>> peers;  // in the order of their first message
        std::unordered_map<int, Peer*> peer_of;
        std::vector<std::unique_ptr<LargeArrival>> arrivals;  // announced and not taken
        // Strays that the transport holds. Those of a lost rail stay.
        std::unordered_map<const Stray*, std::unique_ptr<Stray>> leaving;
        uint32_t lost_seen = 0;  // lost_rails when kept messages were last sent again
        std::atomic<bool> has_strays{false};
        std::mutex strays_lock;  // of the next two
        std::vector<std::unique_ptr<Stray>> to_send;
        std::vector<std::unique_ptr<Stray>> to_take;

        Peer& peer(int pe);
    };
    struct Rail {
        RetransmittingTransport* all;
        int number;
        Transport* inner;
        Events events;
        std::vector<std::unique_ptr<Link>> links;  // by the number of the channel
    };

    uint32_t lost_rails() const { return config_.lost_rails->load(std::memory_order_relaxed); }
    bool is_lost(const Rail& rail) const { return (lost_rails() >> rail.number & 1) != 0; }
    void hand_over(int rail, int channel, std::vector<std::unique_ptr<Stray>> Link::* strays, Stray stray);
    void send(Rail& rail, int channel, Peer& peer, const Unacked& message);
    void reroute(int channel, int pe, const Unacked& message);
    bool retransmit(Rail& rail, int channel);
    bool handle_strays(Rail& rail, int channel);
    bool is_new(Rail& rail, int channel, const Header& header, const char* body, size_t bytes);
    void gather(Rail& rail, int channel, Header header, const char* body, size_t bytes);
    [[noreturn]] static void protocol_error(const Header& header, const char* what);

    const Config config_;
    std::vector<std::unique_ptr<Rail>> rails_;
};

}  // namespace heddle::fabric
