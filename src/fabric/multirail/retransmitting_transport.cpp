#include "fabric/multirail/retransmitting_transport.h"

#include "base/counters.h"
#include "base/error.h"

#include <algorithm>
#include <utility>

namespace heddle::fabric {

// What channels call: a Transport is a Rail, an Endpoint a Peer, and an Arrival a LargeArrival.
struct RetransmittingTransport::Functions {
    static Rail& rail_of(const Transport* transport) {
        return *const_cast<Rail*>(reinterpret_cast<const Rail*>(transport));
    }
    static const TransportApi& inner_api(const Rail& rail) { return *rail.all->config_.api; }

    static bool is_native(const Transport*, const Endpoint*) { return false; }
    static size_t address_blob(const Transport* transport, char* address_blob) {
        const Rail& rail = rail_of(transport);
        return inner_api(rail).address_blob(rail.inner, address_blob);
    }
    static Endpoint* connect(Transport* transport, int channel, int pe, const char* address_blob,
                             size_t address_blob_bytes, char* error, size_t error_bytes) {
        Rail& rail = rail_of(transport);
        Peer& peer = rail.links[static_cast<size_t>(channel)]->peer(pe);
        if (!rail.all->is_lost(rail)) {
            peer.inner =
                inner_api(rail).connect(rail.inner, channel, pe, address_blob, address_blob_bytes, error, error_bytes);
            if (!peer.inner)
                return nullptr;
        }
        return reinterpret_cast<Endpoint*>(&peer);
    }
    static void send(Transport* transport, int channel, Endpoint* to, const void* header, const char* body,
                     size_t bytes, bool large, Done done, void* argument) {
        Rail& rail = rail_of(transport);
        Peer& peer = *reinterpret_cast<Peer*>(to);
        Unacked message = {{}, body, bytes, done, argument};
        memcpy(&message.header, header, sizeof message.header);
        message.header.rail = static_cast<uint32_t>(rail.number);
        message.header.large = large;
        rail.all->send(rail, channel, peer, message);
    }
    static void receive(Transport*, int, int, Arrival* arrival, char* to, size_t bytes, Done done, void* argument) {
        auto* const large = reinterpret_cast<LargeArrival*>(arrival);
        HEDDLE_INVARIANT(bytes == large->bytes);  // the receiver has compared the header with what it expects
        memcpy(to, large->body, bytes);
        refuse(nullptr, 0, arrival);
        if (done)
            done(argument);
    }
    static void refuse(Transport*, int, Arrival* arrival) {
        auto* const large = reinterpret_cast<LargeArrival*>(arrival);
        [[maybe_unused]] const size_t erased =
            std::erase_if(large->link->arrivals, [&](const auto& one) { return one.get() == large; });
        HEDDLE_INVARIANT(erased == 1);  // a large message is received or refused once
    }
    static bool progress(Transport* transport, int channel) {
        Rail& rail = rail_of(transport);
        bool moved = rail.all->retransmit(rail, channel);
        moved |= rail.all->handle_strays(rail, channel);
        return (!rail.all->is_lost(rail) && inner_api(rail).progress(rail.inner, channel)) || moved;
    }
    static int descriptor(const Transport* transport, int channel) {
        const Rail& rail = rail_of(transport);
        return inner_api(rail).descriptor(rail.inner, channel);
    }
    static bool arm(Transport* transport, int channel) {
        const Rail& rail = rail_of(transport);
        return rail.all->is_lost(rail) || inner_api(rail).arm(rail.inner, channel);
    }
};

const TransportApi& RetransmittingTransport::api() {
    using F = Functions;
    static constexpr TransportApi kApi = {
        .name = "retransmitting",
        .open = nullptr,
        .close = nullptr,
        .is_native = F::is_native,
        .address_blob = F::address_blob,
        .connect = F::connect,
        .send = F::send,
        .receive = F::receive,
        .refuse = F::refuse,
        .put = nullptr,
        .get = nullptr,
        .progress = F::progress,
        .descriptor = F::descriptor,
        .arm = F::arm,
    };
    return kApi;
}

RetransmittingTransport::~RetransmittingTransport() = default;

RetransmittingTransport::Peer& RetransmittingTransport::Link::peer(int pe) {
    Peer*& known = peer_of[pe];
    if (!known) {
        peers.push_back(std::make_unique<Peer>(pe));
        known = peers.back().get();
    }
    return *known;
}

Transport* RetransmittingTransport::add_rail(Transport* inner, const Events& events) {
    HEDDLE_INVARIANT(static_cast<int>(rails_.size()) < config_.n_rails);
    auto rail = std::make_unique<Rail>(Rail{this, static_cast<int>(rails_.size()), inner, events, {}});
    for (int channel = 0; channel < config_.n_channels; ++channel) rail->links.push_back(std::make_unique<Link>());
    rails_.push_back(std::move(rail));
    return reinterpret_cast<Transport*>(rails_.back().get());
}

// --- Sending

void RetransmittingTransport::send(Rail& rail, int channel, Peer& peer, const Unacked& message) {
    Unacked& kept = peer.queue.add(message);
    if (peer.inner && !is_lost(rail)) {
        config_.api->send(rail.inner, channel, peer.inner, &kept.header, kept.body, kept.bytes, false,
                          RetransmitQueue::on_sent, &kept);
    } else {
        kept.sent = true;
        reroute(channel, peer.queue.pe(), kept);
    }
}

// Gives a message to the link of the same channel on another rail, and wakes its channel.
void RetransmittingTransport::hand_over(int rail, int channel, std::vector<std::unique_ptr<Stray>> Link::* strays,
                                        Stray stray) {
    Rail& to = *rails_[static_cast<size_t>(rail)];
    Link& link = *to.links[static_cast<size_t>(channel)];
    {
        const std::lock_guard lock(link.strays_lock);
        (link.*strays).push_back(std::make_unique<Stray>(std::move(stray)));
    }
    link.has_strays.store(true, std::memory_order_release);  // pairs with RetransmittingTransport::handle_strays
    config_.wake(to.events.owner, channel);
}

// A copy of the message goes on the first rail that is left. The original stays in its queue until it is acknowledged.
void RetransmittingTransport::reroute(int channel, int pe, const Unacked& message) {
    const uint32_t lost = lost_rails();
    for (int rail = 0; rail < config_.n_rails; ++rail)
        if ((lost >> rail & 1) == 0) {
            base::counters->retransmissions.add();
            return hand_over(rail, channel, &Link::to_send,
                             {pe, message.header, {message.body, message.body + message.bytes}});
        }
}

// Sends all that is kept again, when this rail has been lost, or the rail that has carried its messages since.
bool RetransmittingTransport::retransmit(Rail& rail, int channel) {
    Link& link = *rail.links[static_cast<size_t>(channel)];
    const uint32_t lost = lost_rails();
    if (lost == link.lost_seen || !is_lost(rail))
        return false;
    link.lost_seen = lost;
    for (size_t i = 0; i < link.peers.size(); ++i) {  // messages that come meanwhile may add to them
        Peer& peer = *link.peers[i];
        peer.inner = nullptr;
        for (const Unacked& message : peer.queue.unacked()) reroute(channel, peer.queue.pe(), message);
        peer.queue.on_rail_lost();
    }
    return true;
}

bool RetransmittingTransport::handle_strays(Rail& rail, int channel) {
    Link& link = *rail.links[static_cast<size_t>(channel)];
    // acquire: pairs with RetransmittingTransport::hand_over
    if (!link.has_strays.load(std::memory_order_relaxed) || !link.has_strays.exchange(false, std::memory_order_acquire))
        return false;
    std::vector<std::unique_ptr<Stray>> to_send, to_take;
    {
        const std::lock_guard lock(link.strays_lock);
        to_send.swap(link.to_send);
        to_take.swap(link.to_take);
    }
    for (std::unique_ptr<Stray>& one : to_send) {
        // Where this rail is lost, too, the message's own link sends it again.
        auto* const peer =
            is_lost(rail) ? nullptr : reinterpret_cast<Peer*>(config_.endpoint_of(rail.events.owner, channel, one->pe));
        if (!peer || !peer->inner)
            continue;
        Stray* const stray = one.get();
        stray->leaves_on = &link;
        link.leaving.emplace(stray, std::move(one));
        config_.api->send(
            rail.inner, channel, peer->inner, &stray->header, stray->body.data(), stray->body.size(), false,
            [](void* argument) {
                const auto* const sent = static_cast<Stray*>(argument);
                sent->leaves_on->leaving.erase(sent);
            },
            stray);
    }
    for (const std::unique_ptr<Stray>& one : to_take)
        if (is_new(rail, channel, one->header, one->body.data(), one->body.size()))
            gather(rail, channel, one->header, one->body.data(), one->body.size());
    return true;
}

// --- Receiving

void RetransmittingTransport::protocol_error(const Header& header, const char* what) {
    base::fatal("network", "PE %d has sent what no PE of this job would send: %s (%s)", header.pe, what,
                describe(header).data());
}

// False for a message that has come before, or that belongs to another link, which gets it.
bool RetransmittingTransport::is_new(Rail& rail, int channel, const Header& header, const char* body, size_t bytes) {
    if (header.rail != static_cast<uint32_t>(rail.number)) {
        if (header.rail >= static_cast<uint32_t>(config_.n_rails))
            protocol_error(header, "a message of a rail that is none");
        const int own = static_cast<int>(header.rail);
        if ((lost_rails() >> own & 1) == 0)
            config_.rail_lost(own, header.pe, Loss::kSilent, "it sends over another");
        hand_over(own, channel, &Link::to_take, {header.pe, header, {body, body + bytes}});
        return false;
    }
    RetransmitQueue& queue = rail.links[static_cast<size_t>(channel)]->peer(header.pe).queue;
    if (!queue.on_ack(header.received))
        protocol_error(header, "the receipt of what this PE has not sent");
    return queue.is_next(header);
}

// To the channel, as if its transport had brought the message.
void RetransmittingTransport::gather(Rail& rail, int channel, Header header, const char* body, size_t bytes) {
    header.sequence = 0;  // no channel sees a number
    const Events& events = rail.events;
    if (!header.large)
        return events.arrived(events.owner, channel, &header, body, bytes);
    Link& link = *rail.links[static_cast<size_t>(channel)];
    link.arrivals.push_back(std::make_unique<LargeArrival>(LargeArrival{&link, body, bytes, {}}));
    LargeArrival* const arrival = link.arrivals.back().get();
    events.announced(events.owner, channel, &header, bytes, reinterpret_cast<Arrival*>(arrival));
    if (std::any_of(link.arrivals.begin(), link.arrivals.end(),
                    [&](const auto& one) { return one.get() == arrival; })) {  // it is taken later
        arrival->copy.assign(body, body + bytes);
        arrival->body = arrival->copy.data();
    }
}

void RetransmittingTransport::arrived(int rail, int channel, const Header& header, const char* body, size_t bytes) {
    Rail& on = *rails_[static_cast<size_t>(rail)];
    const bool is_known = header.token == config_.token && header.pe >= 0 && header.pe < config_.n_pes;
    if (!is_known)  // refused by the channel
        return on.events.arrived(on.events.owner, channel, &header, body, bytes);
    if (header.sequence == 0)
        base::fatal("network", "PE %d has another HEDDLE_RAIL_LOSS than this one: right would be the same on all PEs",
                    header.pe);
    if (is_new(on, channel, header, body, bytes))
        gather(on, channel, header, body, bytes);
}

// No PE that retransmits announces anything.
void RetransmittingTransport::announced(int rail, int channel, const Header& header, Arrival* arrival) {
    config_.api->refuse(rails_[static_cast<size_t>(rail)]->inner, channel, arrival);
    if (header.token == config_.token)
        base::fatal("network", "PE %d has another HEDDLE_RAIL_LOSS than this one: right would be the same on all PEs",
                    header.pe);
}

}  // namespace heddle::fabric
