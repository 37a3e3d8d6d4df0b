#include "fabric/wire.h"

#include "base/error.h"
#include "fabric/card.h"
#include "os/memfd.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace heddle::fabric {

namespace {
constexpr const char* kUnasked = "a large reply to what this PE has not asked";
}

Wire::Wire(const Surroundings& surroundings, int number) : surroundings_(surroundings), number_(number) {
    const size_t bytes = os::round_up(static_cast<size_t>(surroundings.n_pes) * sizeof(Peer), os::page_bytes());
    peers_ = static_cast<Peer*>(os::reserve_zeroes(bytes));
    if (!peers_ || !os::make_writable(peers_, bytes))
        base::fatal("network", "no address space for a table of %d PEs", surroundings.n_pes);
}

Wire::~Wire() {
    const auto n_pes = static_cast<size_t>(surroundings_.n_pes);
    for (size_t pe = 0; pe < n_pes; ++pe) {
        free(peers_[pe].card);
        for (Inbound* inbound = peers_[pe].inbounds; inbound;) {
            Inbound* const next = inbound->next;
            delete inbound;
            inbound = next;
        }
    }
    os::unmap(peers_, os::round_up(n_pes * sizeof(Peer), os::page_bytes()));
}

void Wire::queue(Stream* stream) {
    // acq_rel, pairs with the exchange in send_queued: whoever unsets it sees what was published before.
    if (stream->queued.exchange(true, std::memory_order_acq_rel))
        return;
    Stream* top = to_send_.load(std::memory_order_relaxed);
    do {
        stream->next_to_send.store(top, std::memory_order_relaxed);
        // seq_cst: with unlock and the load behind it in poll, so that either its holder sees the stream or this thread
        // gets the lock.
    } while (!to_send_.compare_exchange_weak(top, stream, std::memory_order_seq_cst, std::memory_order_relaxed));
}

void Wire::queue(Inbound* inbound) {
    if (inbound->queued)
        return;
    inbound->queued = true;
    inbound->next_to_answer = to_answer_;
    to_answer_ = inbound;
}

void Wire::hold_back(Inbound* inbound) {
    if (inbound->held_back)
        return;
    inbound->held_back = true;
    inbound->next_to_tell = to_tell_;
    to_tell_ = inbound;
    owes_.store(true, std::memory_order_relaxed);  // a hint for the service thread
}

void Wire::wait_for_others(Inbound* inbound) {
    if (inbound->waits)
        return;
    inbound->waits = true;
    inbound->next_to_go_on = to_go_on_;
    to_go_on_ = inbound;
}

bool Wire::poll_alone() {
    bool moved = false;
    do {
        if (!try_lock())
            break;
        moved |= work();
        unlock();
    } while (to_send_.load(std::memory_order_seq_cst) != nullptr ||  // pairs with queue
             woken_.load(std::memory_order_seq_cst));  // pairs with wake
    return moved;
}

// Wires that others have woken have nobody else: no message may come there that would make somebody poll. One whose
// lock is taken is left to its holder.
bool Wire::poll_woken() {
    bool moved = false;
    for (int rail = 0; rail < surroundings_.n_rails; ++rail)
        if (rails_[rail]->woken_.load(std::memory_order_seq_cst))
            moved |= rails_[rail]->poll_alone();
    return moved;
}

bool Wire::poll() {
    bool moved = poll_alone();
    if (moved && rails_)
        while (poll_woken()) continue;
    if (moved && surroundings_.go_on)
        surroundings_.go_on(surroundings_.waiting);
    return moved;
}

// What there is to do, under the lock.
bool Wire::work() {
    constexpr int kRounds = 8;  // then another thread may have the lock
    bool moved = false;
    for (int round = 0; round < kRounds; ++round) {
        bool moves = keeps() && send_again();
        moves |= send_queued();
        moves |= go_on_with_woken();
        if (round == 0)
            moves |= tell_held_back();
        moves |= surroundings_.api->progress(surroundings_.transport, number_);
        moves |= answer_queued();
        if (!moves)
            break;
        moved = true;
    }
    if (moved)
        surroundings_.landed(surroundings_.waiting);
    return moved;
}

bool Wire::send_queued() {
    Stream* stream = to_send_.exchange(nullptr, std::memory_order_acquire);  // pairs with queue
    const bool any = stream != nullptr;
    while (stream) {
        Stream* const next = stream->next_to_send.load(std::memory_order_relaxed);
        // From here on it may be queued again. An exchange, which no load of send passes: who found it queued has
        // published what send sees. acq_rel: pairs with the one in queue.
        stream->queued.exchange(false, std::memory_order_acq_rel);
        stream->send();
        stream = next;
    }
    return any;
}

bool Wire::go_on_with_woken() {
    if (!woken_.load(std::memory_order_relaxed) || !woken_.exchange(false, std::memory_order_seq_cst))
        return false;
    if (keeps()) {
        send_carried();
        take_carried();
    }
    Inbound* inbound = to_go_on_;
    to_go_on_ = nullptr;
    while (inbound) {
        Inbound* const next = inbound->next_to_go_on;
        inbound->waits = false;
        queue(inbound);
        inbound = next;
    }
    return true;
}

bool Wire::answer_queued() {
    const bool any = to_answer_ != nullptr;
    while (to_answer_) {
        Inbound* const inbound = to_answer_;
        to_answer_ = inbound->next_to_answer;
        inbound->queued = false;
        inbound->answer();
    }
    return any;
}

// Those that no message has taken along since the last poll.
bool Wire::tell_held_back() {
    const bool any = to_tell_ != nullptr;
    Inbound* inbound = to_tell_;
    to_tell_ = nullptr;
    owes_.store(false, std::memory_order_relaxed);
    while (inbound) {
        Inbound* const next = inbound->next_to_tell;
        inbound->held_back = false;
        inbound->tell();
        inbound = next;
    }
    return any;
}

// The header of records to pe takes an acknowledgement along that is held back for it.
void Wire::take_along(int pe, Header* header) {
    for (Inbound** at = &to_tell_; *at; at = &(*at)->next_to_tell) {
        Inbound* const inbound = *at;
        if (inbound->pe() != pe)
            continue;
        *at = inbound->next_to_tell;
        inbound->held_back = false;
        header->count = inbound->lane() + 1;
        header->complete = inbound->told();
        return;
    }
}

bool Wire::arm() {
    if (!try_lock())
        return false;
    const bool idle = !work() && to_send_.load(std::memory_order_acquire) == nullptr &&
                      !woken_.load(std::memory_order_relaxed) &&
                      surroundings_.api->arm(surroundings_.transport, number_);
    unlock();
    return idle && to_send_.load(std::memory_order_seq_cst) == nullptr &&  // pairs with queue
           !woken_.load(std::memory_order_seq_cst);                        // pairs with wake
}

void Wire::say(int pe, Header header, const char* body, size_t bytes) {
    if (!try_lock())
        return;
    send_message(pe, header, body, bytes, false, nullptr, nullptr);
    unlock();
}

void Wire::broken(int pe, const char* what) const {
    base::fatal("network", "PE %d has sent what no PE of this job would send: %s", pe, what);
}

Endpoint* Wire::endpoint_of(int pe) {
    Peer& peer = peers_[pe];
    if (peer.endpoint)
        return peer.endpoint;
    char error[512] = "";
    char card[kMostCardBytes];
    size_t bytes = peer.card_bytes;
    if (peer.card)
        memcpy(card, peer.card, bytes);
    else
        bytes = surroundings_.card_of(pe, card, error, sizeof error);
    const char* mine_there = card;
    if (bytes != 0 && !find_card(&mine_there, &bytes, surroundings_.rail))
        snprintf(error, sizeof error, "its card has no rail %d: right would be as many rails on all PEs",
                 surroundings_.rail);
    else if (bytes != 0)
        peer.endpoint =
            surroundings_.api->connect(surroundings_.transport, number_, pe, mine_there, bytes, error, sizeof error);
    if (!peer.endpoint) {
        surroundings_.lost(pe, Loss::kBroken, error);
        return nullptr;
    }
    char mine[kMostCardBytes];
    const size_t mine_bytes = surroundings_.own_card(surroundings_.owner, mine);
    char* const copy = static_cast<char*>(malloc(mine_bytes));
    if (!copy)
        base::fatal("network", "no memory for a message of %zu bytes", mine_bytes);
    memcpy(copy, mine, mine_bytes);
    send_message(pe, {.kind = MessageKind::kHello}, copy, mine_bytes, false, free, copy);
    return peer.endpoint;
}

void Wire::send_message(int pe, Header header, const char* body, size_t bytes, bool large, Done done, void* argument) {
    Endpoint* const to = is_lost() ? nullptr : endpoint_of(pe);
    if (!to && !keeps())
        return;
    if (header.kind == MessageKind::kRecords)
        take_along(pe, &header);
    header.token = surroundings_.token;
    header.pe = surroundings_.pe;
    header.rail = static_cast<uint64_t>(surroundings_.rail);
    if (!keeps())
        return surroundings_.api->send(surroundings_.transport, number_, to, &header, body, bytes, large, done,
                                       argument);
    Kept& message = link_of(pe).keep({header, body, bytes, done, argument});
    if (to) {
        surroundings_.api->send(surroundings_.transport, number_, to, &message.header, body, bytes, false,
                                Link::on_gone, &message);
    } else {
        message.gone = true;
        send_over_another(pe, message);
    }
}

void Wire::receive(int pe, Arrival* arrival, char* to, size_t bytes, Done done, void* argument) {
    surroundings_.api->receive(surroundings_.transport, number_, pe, arrival, to, bytes, done, argument);
}

bool Wire::is_native(int pe) {
    Endpoint* const to = endpoint_of(pe);
    return to && surroundings_.api->is_native(surroundings_.transport, to);
}

void Wire::put(int pe, Address to, const char* from, size_t bytes, Done done, void* argument) {
    surroundings_.api->put(surroundings_.transport, number_, peers_[pe].endpoint, static_cast<int>(to.region),
                           to.offset, from, bytes, done, argument);
}

void Wire::get(int pe, Address from, char* to, size_t bytes, Done done, void* argument) {
    surroundings_.api->get(surroundings_.transport, number_, peers_[pe].endpoint, static_cast<int>(from.region),
                           from.offset, to, bytes, done, argument);
}

void Wire::refuse(Arrival* arrival) {
    surroundings_.api->refuse(surroundings_.transport, number_, arrival);
}

// Strangers are refused; one message tells.
bool Wire::is_known(const Header& header) const {
    return header.token == surroundings_.token && header.pe >= 0 && header.pe < surroundings_.n_pes;
}

Stream* Wire::stream_of(const Header& header, uint32_t lane) const {
    Stream* const stream = surroundings_.stream_of(surroundings_.owner, lane, header.pe);
    if (!stream || &stream->wire() != this)
        broken(header.pe, "an answer to what this PE has not sent");
    return stream;
}

void Wire::acknowledged(const Header& header, uint32_t lane, uint64_t position) const {
    if (!stream_of(header, lane)->on_ack(position))
        broken(header.pe, "an acknowledgement of what this PE has not sent");
}

Inbound& Wire::inbound_of(int pe, uint32_t lane) {
    Peer& peer = peers_[pe];
    for (Inbound* inbound = peer.inbounds; inbound; inbound = inbound->next)
        if (inbound->lane() == lane)
            return *inbound;
    if (lane >= kMostLanes)
        broken(pe, "records of a lane that no PE has");
    Delivered* const delivered =
        surroundings_.n_rails > 1 ? surroundings_.delivered_of(surroundings_.owner, lane, pe) : nullptr;
    peer.inbounds = new Inbound(*this, pe, lane, delivered, peer.inbounds);
    return *peer.inbounds;
}

void Wire::arrived(const Header& header, const char* body, size_t bytes) {
    if (!is_known(header)) {
        if (!refused_)
            base::report("network", "refused a message that does not come from this job");
        refused_ = true;
        return;
    }
    if ((header.sequence != 0) != keeps())
        base::fatal("network", "PE %d has another HEDDLE_RAIL_LOSS than this one: right would be the same on all PEs",
                    header.pe);
    if (!keeps() || is_news(header, body, bytes))
        take(header, body, bytes);
}

void Wire::take(const Header& header, const char* body, size_t bytes) {
    switch (header.kind) {
        case MessageKind::kHello: {
            Peer& peer = peers_[header.pe];
            if (bytes == 0 || bytes > kMostCardBytes)
                broken(header.pe, "a card that is none");
            if (peer.card)
                return;
            peer.card = static_cast<char*>(malloc(bytes));
            if (!peer.card)
                base::fatal("network", "no memory for a card of %zu bytes", bytes);
            memcpy(peer.card, body, bytes);
            peer.card_bytes = bytes;
            return;
        }
        case MessageKind::kRecords:
            if (header.count != 0)
                acknowledged(header, header.count - 1, header.complete);
            return inbound_of(header.pe, header.lane).on_records(header.position, body, bytes);
        case MessageKind::kAck:
            return acknowledged(header, header.lane, header.position);
        case MessageKind::kReply: {
            Stream* const stream = stream_of(header, header.lane);
            if (!stream->on_reply(header.position, header.count, body, bytes) || !stream->on_ack(header.complete))
                broken(header.pe, "a reply to what this PE has not asked");
            return;
        }
        case MessageKind::kPulse:
            return surroundings_.heard(surroundings_.owner, header, body, bytes);
        case MessageKind::kLargeData:
            if (keeps())
                return inbound_of(header.pe, header.lane).on_large(header.position, bytes, body);
            break;
        case MessageKind::kLargeReply:
            if (keeps()) {
                uint64_t number = header.position;
                Stream* const stream = stream_of(header, header.lane);
                char* const to = stream->place_of_large_reply(&number, bytes);
                if (!to)
                    broken(header.pe, kUnasked);
                memcpy(to, body, bytes);
                return stream->on_large_reply(number);
            }
            break;
    }
    broken(header.pe, "a message of an unknown kind");
}

namespace {

// A large reply on its way into place.
struct LargeReply {
    Stream* stream;
    uint64_t number;
};

void on_large_reply_done(void* argument) {
    auto* reply = static_cast<LargeReply*>(argument);
    reply->stream->on_large_reply(reply->number);
    delete reply;
}

}  // namespace

void Wire::announced(const Header& header, size_t bytes, Arrival* arrival) {
    if (!is_known(header)) {
        refuse(arrival);
        return;
    }
    switch (header.kind) {
        case MessageKind::kLargeData:
            return inbound_of(header.pe, header.lane).on_large(header.position, bytes, arrival);
        case MessageKind::kLargeReply: {
            Stream* const stream = stream_of(header, header.lane);
            uint64_t number = header.position;
            char* const to = stream->place_of_large_reply(&number, bytes);
            if (!to)
                broken(header.pe, kUnasked);
            return receive(header.pe, arrival, to, bytes, on_large_reply_done, new LargeReply{stream, number});
        }
        default:
            broken(header.pe, "a large message of an unknown kind");
    }
}

}  // namespace heddle::fabric
