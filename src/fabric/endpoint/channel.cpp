#include "fabric/endpoint/channel.h"

#include "base/counters.h"
#include "base/error.h"
#include "fabric/transport/address_blob.h"
#include "os/memfd.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace heddle::fabric {

namespace {
constexpr const char* kUnasked = "a large reply to what this PE has not asked";
}

Channel::Channel(const ChannelConfig& config, int number) : config_(config), number_(number) {
    const size_t bytes = os::round_up(static_cast<size_t>(config.n_pes) * sizeof(Peer), os::page_bytes());
    peers_ = static_cast<Peer*>(os::reserve_zeroes(bytes));
    if (!peers_ || !os::make_writable(peers_, bytes))
        base::fatal("network", "no address space for a table of %d PEs", config.n_pes);
}

Channel::~Channel() {
    const auto n_pes = static_cast<size_t>(config_.n_pes);
    for (size_t pe = 0; pe < n_pes; ++pe) {
        free(peers_[pe].address_blob);
        for (Inbound* inbound = peers_[pe].inbounds; inbound;) {
            Inbound* const next = inbound->next;
            delete inbound;
            inbound = next;
        }
    }
    os::unmap(peers_, os::round_up(n_pes * sizeof(Peer), os::page_bytes()));
}

void Channel::queue(Stream* stream) {
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

void Channel::queue(Inbound* inbound) {
    if (inbound->queued)
        return;
    inbound->queued = true;
    inbound->next_to_progress = to_progress_;
    to_progress_ = inbound;
}

void Channel::delay_ack(Inbound* inbound) {
    if (inbound->ack_delayed)
        return;
    inbound->ack_delayed = true;
    inbound->next_to_ack = to_ack_;
    to_ack_ = inbound;
    ack_pending_.store(true, std::memory_order_relaxed);  // a hint for the service thread
}

void Channel::wait_for_others(Inbound* inbound) {
    if (inbound->waits)
        return;
    inbound->waits = true;
    inbound->next_ready = ready_;
    ready_ = inbound;
}

bool Channel::poll_alone() {
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

// Channels that others have woken have nobody else: no message may come there that would make somebody poll. One whose
// lock is taken is left to its holder.
bool Channel::poll_woken() {
    bool moved = false;
    for (int rail = 0; rail < config_.n_rails; ++rail)
        if (rails_[rail]->woken_.load(std::memory_order_seq_cst))
            moved |= rails_[rail]->poll_alone();
    return moved;
}

bool Channel::poll() {
    bool moved = poll_alone();
    if (moved && rails_)
        while (poll_woken()) continue;
    if (moved && config_.run_ready)
        config_.run_ready(config_.waiting);
    return moved;
}

// What there is to do, under the lock.
bool Channel::work() {
    constexpr int kRounds = 8;  // then another thread may have the lock
    bool moved = false;
    for (int round = 0; round < kRounds; ++round) {
        bool moves = retransmits() && retransmit();
        moves |= send_queued();
        moves |= progress_woken();
        if (round == 0)
            moves |= send_delayed_acks();
        moves |= config_.api->progress(config_.transport, number_);
        moves |= progress_queued();
        if (!moves)
            break;
        moved = true;
    }
    if (moved)
        config_.notify(config_.waiting);
    return moved;
}

bool Channel::send_queued() {
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

bool Channel::progress_woken() {
    if (!woken_.load(std::memory_order_relaxed) || !woken_.exchange(false, std::memory_order_seq_cst))
        return false;
    if (retransmits()) {
        send_rerouted();
        take_rerouted();
    }
    Inbound* inbound = ready_;
    ready_ = nullptr;
    while (inbound) {
        Inbound* const next = inbound->next_ready;
        inbound->waits = false;
        queue(inbound);
        inbound = next;
    }
    return true;
}

bool Channel::progress_queued() {
    const bool any = to_progress_ != nullptr;
    while (to_progress_) {
        Inbound* const inbound = to_progress_;
        to_progress_ = inbound->next_to_progress;
        inbound->queued = false;
        inbound->progress();
    }
    return any;
}

// Those that no message has taken along since the last poll.
bool Channel::send_delayed_acks() {
    const bool any = to_ack_ != nullptr;
    Inbound* inbound = to_ack_;
    to_ack_ = nullptr;
    ack_pending_.store(false, std::memory_order_relaxed);
    while (inbound) {
        Inbound* const next = inbound->next_to_ack;
        inbound->ack_delayed = false;
        inbound->send_ack();
        inbound = next;
    }
    return any;
}

// The header of records to pe takes an acknowledgement along that is held back for it.
void Channel::piggyback_ack(int pe, Header* header) {
    for (Inbound** at = &to_ack_; *at; at = &(*at)->next_to_ack) {
        Inbound* const inbound = *at;
        if (inbound->pe() != pe)
            continue;
        *at = inbound->next_to_ack;
        inbound->ack_delayed = false;
        header->count = inbound->stream_set() + 1;
        header->complete = inbound->ack_position();
        return;
    }
}

bool Channel::arm() {
    if (!try_lock())
        return false;
    const bool idle = !work() && to_send_.load(std::memory_order_acquire) == nullptr &&
                      !woken_.load(std::memory_order_relaxed) && config_.api->arm(config_.transport, number_);
    unlock();
    return idle && to_send_.load(std::memory_order_seq_cst) == nullptr &&  // pairs with queue
           !woken_.load(std::memory_order_seq_cst);                        // pairs with wake
}

void Channel::send_single(int pe, Header header, const char* body, size_t bytes) {
    if (!try_lock())
        return;
    send_message(pe, header, body, bytes, false, nullptr, nullptr);
    unlock();
}

void Channel::protocol_error(int pe, const char* what) const {
    base::fatal("network", "PE %d has sent what no PE of this job would send: %s", pe, what);
}

Endpoint* Channel::endpoint_of(int pe) {
    Peer& peer = peers_[pe];
    if (peer.endpoint)
        return peer.endpoint;
    char error[512] = "";
    char address_blob[kMaxAddressBlobBytes];
    size_t bytes = peer.address_blob_bytes;
    if (peer.address_blob)
        memcpy(address_blob, peer.address_blob, bytes);
    else
        bytes = config_.address_blob_of(pe, address_blob, error, sizeof error);
    const char* mine_there = address_blob;
    if (bytes != 0 && !find_rail_address(&mine_there, &bytes, config_.rail))
        snprintf(error, sizeof error, "its address blob has no rail %d: right would be as many rails on all PEs",
                 config_.rail);
    else if (bytes != 0)
        peer.endpoint = config_.api->connect(config_.transport, number_, pe, mine_there, bytes, error, sizeof error);
    if (!peer.endpoint) {
        config_.lost(pe, Loss::kBroken, error);
        return nullptr;
    }
    char mine[kMaxAddressBlobBytes];
    const size_t mine_bytes = config_.own_address_blob(config_.owner, mine);
    char* const copy = static_cast<char*>(malloc(mine_bytes));
    if (!copy)
        base::fatal("network", "no memory for a message of %zu bytes", mine_bytes);
    memcpy(copy, mine, mine_bytes);
    send_message(pe, {.kind = MessageKind::kConnect}, copy, mine_bytes, false, free, copy);
    return peer.endpoint;
}

void Channel::send_message(int pe, Header header, const char* body, size_t bytes, bool large, Done done,
                           void* argument) {
    Endpoint* const to = is_lost() ? nullptr : endpoint_of(pe);
    if (!to && !retransmits())
        return;
    if (header.kind == MessageKind::kRecords)
        piggyback_ack(pe, &header);
    base::counters->messages_sent.add_cheaply();
    header.token = config_.token;
    header.pe = config_.pe;
    header.rail = static_cast<uint64_t>(config_.rail);
    if (!retransmits())
        return config_.api->send(config_.transport, number_, to, &header, body, bytes, large, done, argument);
    Unacked& message = retransmit_queue_of(pe).add({header, body, bytes, done, argument});
    if (to) {
        config_.api->send(config_.transport, number_, to, &message.header, body, bytes, false, RetransmitQueue::on_sent,
                          &message);
    } else {
        message.sent = true;
        reroute(pe, message);
    }
}

void Channel::receive(int pe, Arrival* arrival, char* to, size_t bytes, Done done, void* argument) {
    config_.api->receive(config_.transport, number_, pe, arrival, to, bytes, done, argument);
}

bool Channel::is_native(int pe) {
    Endpoint* const to = endpoint_of(pe);
    return to && config_.api->is_native(config_.transport, to);
}

void Channel::put(int pe, Address to, const char* from, size_t bytes, Done done, void* argument) {
    config_.api->put(config_.transport, number_, peers_[pe].endpoint, static_cast<int>(to.region), to.offset, from,
                     bytes, done, argument);
}

void Channel::get(int pe, Address from, char* to, size_t bytes, Done done, void* argument) {
    config_.api->get(config_.transport, number_, peers_[pe].endpoint, static_cast<int>(from.region), from.offset, to,
                     bytes, done, argument);
}

void Channel::refuse(Arrival* arrival) {
    config_.api->refuse(config_.transport, number_, arrival);
}

// Strangers are refused; one message tells.
bool Channel::is_known(const Header& header) const {
    return header.token == config_.token && header.pe >= 0 && header.pe < config_.n_pes;
}

Stream* Channel::stream_of(const Header& header, uint32_t stream_set) const {
    Stream* const stream = config_.stream_of(config_.owner, stream_set, header.pe);
    if (!stream || &stream->channel() != this)
        protocol_error(header.pe, "an answer to what this PE has not sent");
    return stream;
}

void Channel::acknowledged(const Header& header, uint32_t stream_set, uint64_t position) const {
    if (!stream_of(header, stream_set)->on_ack(position))
        protocol_error(header.pe, "an acknowledgement of what this PE has not sent");
}

Inbound& Channel::inbound_of(int pe, uint32_t stream_set) {
    Peer& peer = peers_[pe];
    for (Inbound* inbound = peer.inbounds; inbound; inbound = inbound->next)
        if (inbound->stream_set() == stream_set)
            return *inbound;
    if (stream_set >= kMaxStreamSets)
        protocol_error(pe, "records of a stream set that no PE has");
    RailWatermarks* const watermarks =
        config_.n_rails > 1 ? config_.watermarks_of(config_.owner, stream_set, pe) : nullptr;
    peer.inbounds = new Inbound(*this, pe, stream_set, watermarks, peer.inbounds);
    return *peer.inbounds;
}

void Channel::arrived(const Header& header, const char* body, size_t bytes) {
    if (!is_known(header)) {
        if (!refused_)
            base::report("network", "refused a message that does not come from this job");
        refused_ = true;
        return;
    }
    base::counters->messages_received.add_cheaply();
    if ((header.sequence != 0) != retransmits())
        base::fatal("network", "PE %d has another HEDDLE_RAIL_LOSS than this one: right would be the same on all PEs",
                    header.pe);
    if (!retransmits() || is_new(header, body, bytes))
        dispatch(header, body, bytes);
}

void Channel::dispatch(const Header& header, const char* body, size_t bytes) {
    switch (header.kind) {
        case MessageKind::kConnect: {
            Peer& peer = peers_[header.pe];
            if (bytes == 0 || bytes > kMaxAddressBlobBytes)
                protocol_error(header.pe, "a card that is none");
            if (peer.address_blob)
                return;
            peer.address_blob = static_cast<char*>(malloc(bytes));
            if (!peer.address_blob)
                base::fatal("network", "no memory for a card of %zu bytes", bytes);
            memcpy(peer.address_blob, body, bytes);
            peer.address_blob_bytes = bytes;
            return;
        }
        case MessageKind::kRecords:
            if (header.count != 0)
                acknowledged(header, header.count - 1, header.complete);
            return inbound_of(header.pe, header.stream_set).on_records(header.position, body, bytes);
        case MessageKind::kAck:
            return acknowledged(header, header.stream_set, header.position);
        case MessageKind::kReply: {
            Stream* const stream = stream_of(header, header.stream_set);
            if (!stream->on_reply(header.position, header.count, body, bytes) || !stream->on_ack(header.complete))
                protocol_error(header.pe, "a reply to what this PE has not asked");
            return;
        }
        case MessageKind::kHeartbeat:
            return config_.on_heartbeat(config_.owner, header, body, bytes);
        case MessageKind::kLargeData:
            if (retransmits())
                return inbound_of(header.pe, header.stream_set).on_large(header.position, bytes, body);
            break;
        case MessageKind::kLargeReply:
            if (retransmits()) {
                uint64_t number = header.position;
                Stream* const stream = stream_of(header, header.stream_set);
                char* const to = stream->place_of_large_reply(&number, bytes);
                if (!to)
                    protocol_error(header.pe, kUnasked);
                memcpy(to, body, bytes);
                return stream->on_large_reply(number);
            }
            break;
    }
    protocol_error(header.pe, "a message of an unknown kind");
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

void Channel::announced(const Header& header, size_t bytes, Arrival* arrival) {
    if (!is_known(header)) {
        refuse(arrival);
        return;
    }
    base::counters->messages_received.add_cheaply();
    switch (header.kind) {
        case MessageKind::kLargeData:
            return inbound_of(header.pe, header.stream_set).on_large(header.position, bytes, arrival);
        case MessageKind::kLargeReply: {
            Stream* const stream = stream_of(header, header.stream_set);
            uint64_t number = header.position;
            char* const to = stream->place_of_large_reply(&number, bytes);
            if (!to)
                protocol_error(header.pe, kUnasked);
            return receive(header.pe, arrival, to, bytes, on_large_reply_done, new LargeReply{stream, number});
        }
        default:
            protocol_error(header.pe, "a large message of an unknown kind");
    }
}

}  // namespace heddle::fabric
