// What a wire does so that the job can go on without its rail: fabric/link.h.
#include "fabric/wire.h"

#include <utility>

namespace heddle::fabric {

Link& Wire::link_of(int pe) {
    Peer& peer = peers_[pe];
    if (!peer.link) {
        links_.push_back(std::make_unique<Link>(pe));
        peer.link = links_.back().get();
    }
    return *peer.link;
}

// A copy of the message goes on the first rail that there still is: its wire lets go of it by itself.
void Wire::send_over_another(int pe, const Kept& message) {
    const uint32_t lost = lost_rails();
    for (int rail = 0; rail < surroundings_.n_rails; ++rail) {
        if (lost >> rail & 1)
            continue;
        auto copy =
            std::make_unique<Carried>(Carried{pe, message.header, {message.body, message.body + message.bytes}});
        const std::lock_guard lock(rails_[rail]->carried_lock_);
        rails_[rail]->carried_.push_back(std::move(copy));
        return wake(rail);
    }
}

// All that is kept, when this rail has been lost, or the one that has carried it since.
bool Wire::send_again() {
    const uint32_t lost = lost_rails();
    if (lost == lost_seen_ || !is_lost())
        return false;
    lost_seen_ = lost;
    for (size_t i = 0; i < links_.size(); ++i) {  // messages that come meanwhile may add to them
        const Link& link = *links_[i];
        Peer& peer = peers_[link.pe()];
        if (peer.endpoint)
            surroundings_.api->drop(surroundings_.transport, number_, std::exchange(peer.endpoint, nullptr));
        for (const Kept& message : link.kept()) send_over_another(link.pe(), message);
    }
    return true;
}

void Wire::send_carried() {
    std::vector<std::unique_ptr<Carried>> all;
    {
        const std::lock_guard lock(carried_lock_);
        all.swap(carried_);
    }
    for (std::unique_ptr<Carried>& one : all) {
        Endpoint* const to = is_lost() ? nullptr : endpoint_of(one->pe);
        if (!to)
            continue;
        Carried* const message = one.release();
        surroundings_.api->send(
            surroundings_.transport, number_, to, &message->header, message->body.data(), message->body.size(), false,
            [](void* carried) { delete static_cast<Carried*>(carried); }, message);
    }
}

void Wire::take_carried() {
    std::vector<Brought> all;
    {
        const std::lock_guard lock(carried_lock_);
        all.swap(brought_);
    }
    for (const Brought& one : all)
        if (is_news(one.header, one.body.data(), one.body.size()))
            take(one.header, one.body.data(), one.body.size());
}

// False for what has come before, or is another wire's, which gets it.
bool Wire::is_news(const Header& header, const char* body, size_t bytes) {
    if (header.rail != static_cast<uint64_t>(surroundings_.rail)) {
        if (header.rail >= static_cast<uint64_t>(surroundings_.n_rails))
            broken(header.pe, "a message of a rail that is none");
        const int rail = static_cast<int>(header.rail);
        if ((lost_rails() >> rail & 1) == 0)
            surroundings_.rail_lost(rail, header.pe, Loss::kSilent, "it sends over another");
        const std::lock_guard lock(rails_[rail]->carried_lock_);
        rails_[rail]->brought_.push_back({header, {body, body + bytes}});
        wake(rail);
        return false;
    }
    Link& link = link_of(header.pe);
    if (!link.has(header.received))
        broken(header.pe, "the receipt of what this PE has not sent");
    return link.takes(header);
}

}  // namespace heddle::fabric
