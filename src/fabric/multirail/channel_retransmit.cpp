// What a channel does so that the job can go on without its rail: fabric/multirail/retransmit_queue.h.
#include "base/counters.h"
#include "fabric/endpoint/channel.h"

#include <utility>

namespace heddle::fabric {

RetransmitQueue& Channel::retransmit_queue_of(int pe) {
    Peer& peer = peers_[pe];
    if (!peer.retransmit_queue) {
        retransmit_queues_.push_back(std::make_unique<RetransmitQueue>(pe));
        peer.retransmit_queue = retransmit_queues_.back().get();
    }
    return *peer.retransmit_queue;
}

// A copy of the message goes on the first rail that there still is: its channel lets go of it by itself.
void Channel::reroute(int pe, const Unacked& message) {
    const uint32_t lost = lost_rails();
    for (int rail = 0; rail < config_.n_rails; ++rail) {
        if (lost >> rail & 1)
            continue;
        auto copy =
            std::make_unique<Rerouted>(Rerouted{pe, message.header, {message.body, message.body + message.bytes}});
        const std::lock_guard lock(rails_[rail]->rerouted_lock_);
        rails_[rail]->rerouted_.push_back(std::move(copy));
        base::counters->retransmissions.add();
        return wake(rail);
    }
}

// All that is kept, when this rail has been lost, or the one that has carried it since.
bool Channel::retransmit() {
    const uint32_t lost = lost_rails();
    if (lost == lost_seen_ || !is_lost())
        return false;
    lost_seen_ = lost;
    for (size_t i = 0; i < retransmit_queues_.size(); ++i) {  // messages that come meanwhile may add to them
        const RetransmitQueue& retransmit_queue = *retransmit_queues_[i];
        Peer& peer = peers_[retransmit_queue.pe()];
        if (peer.endpoint)
            config_.api->drop(config_.transport, number_, std::exchange(peer.endpoint, nullptr));
        for (const Unacked& message : retransmit_queue.unacked()) reroute(retransmit_queue.pe(), message);
    }
    return true;
}

void Channel::send_rerouted() {
    std::vector<std::unique_ptr<Rerouted>> all;
    {
        const std::lock_guard lock(rerouted_lock_);
        all.swap(rerouted_);
    }
    for (std::unique_ptr<Rerouted>& one : all) {
        Endpoint* const to = is_lost() ? nullptr : endpoint_of(one->pe);
        if (!to)
            continue;
        Rerouted* const message = one.release();
        config_.api->send(
            config_.transport, number_, to, &message->header, message->body.data(), message->body.size(), false,
            [](void* rerouted) { delete static_cast<Rerouted*>(rerouted); }, message);
    }
}

void Channel::take_rerouted() {
    std::vector<Misdelivered> all;
    {
        const std::lock_guard lock(rerouted_lock_);
        all.swap(misdelivered_);
    }
    for (const Misdelivered& one : all)
        if (is_new(one.header, one.body.data(), one.body.size()))
            dispatch(one.header, one.body.data(), one.body.size());
}

// False for what has come before, or is another channel's, which gets it.
bool Channel::is_new(const Header& header, const char* body, size_t bytes) {
    if (header.rail != static_cast<uint64_t>(config_.rail)) {
        if (header.rail >= static_cast<uint64_t>(config_.n_rails))
            protocol_error(header.pe, "a message of a rail that is none");
        const int rail = static_cast<int>(header.rail);
        if ((lost_rails() >> rail & 1) == 0)
            config_.rail_lost(rail, header.pe, Loss::kSilent, "it sends over another");
        const std::lock_guard lock(rails_[rail]->rerouted_lock_);
        rails_[rail]->misdelivered_.push_back({header, {body, body + bytes}});
        wake(rail);
        return false;
    }
    RetransmitQueue& retransmit_queue = retransmit_queue_of(header.pe);
    if (!retransmit_queue.on_ack(header.received))
        protocol_error(header.pe, "the receipt of what this PE has not sent");
    return retransmit_queue.is_next(header);
}

}  // namespace heddle::fabric
