#include "fabric/endpoint/channel.h"

#include "base/counters.h"
#include "base/error.h"
#include "base/slow_event.h"
#include "fabric/transport/address_blob.h"
#include "os/asymmetric_fence.h"
#include "os/memfd.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace heddle::fabric {

Channel::Channel(const ChannelConfig& config, int number) : config_(config), number_(number) {
    HEDDLE_INVARIANT(config.rail >= 0 && config.rail < config.n_rails && config.n_rails <= kMaxRails);
    HEDDLE_INVARIANT(config.pe >= 0 && config.pe < config.n_pes);
    const size_t bytes = os::round_up(static_cast<size_t>(config.n_pes) * sizeof(Peer), os::page_bytes());
    peers_ = static_cast<Peer*>(os::reserve_zeroes(bytes));
    if (!peers_ || !os::make_writable(peers_, bytes))
        base::fatal("network", "no address space for a table of %d PEs", config.n_pes);
}

Channel::~Channel() {
    const auto n_pes = static_cast<size_t>(config_.n_pes);
    for (size_t pe = 0; pe < n_pes; ++pe) {
        for (uint32_t i = 0; i < peers_[pe].n_inbounds; ++i) delete peers_[pe].inbounds[i];
        free(peers_[pe].inbounds);
    }
    os::unmap(peers_, os::round_up(n_pes * sizeof(Peer), os::page_bytes()));
}

void Channel::queue(Stream* stream) {
    HEDDLE_INVARIANT(&stream->channel() == this);
    // acq_rel: pairs with Channel::send_queued, which sees what was published before it clears the flag.
    if (stream->queued.exchange(true, std::memory_order_acq_rel))
        return;
    Stream* top = to_send_.load(std::memory_order_relaxed);
    do {
        stream->next_to_send.store(top, std::memory_order_relaxed);
        // seq_cst: pairs with Channel::unlock, Channel::is_due and Channel::send_queued: either the lock's holder sees
        // the stream, or this thread gets the lock.
    } while (!to_send_.compare_exchange_weak(top, stream, std::memory_order_seq_cst, std::memory_order_relaxed));
}

bool Channel::poll_alone(int sends_to) {
    bool moved = false;
    for (int turn = 0; turn < kTurns; ++turn) {
        if (!try_lock())
            return moved;
        const bool moves = work(sends_to);
        const bool sleeps_well = !moves || stays_armed();
        unlock();
        moved |= moves;
        if (!sleeps_well)
            leave_rest();
        if (!is_due())
            return moved;
    }
    leave_rest();
    return moved;
}

// Behind work that has moved something, under the lock. False: the service thread sleeps, and what is in the transport
// would not wake it, or acks wait for the next poll. A transport is armed when a round has moved nothing.
bool Channel::stays_armed() {
    if (!armed_)
        return true;
    armed_ = false;
    if (!config_.network.is_asleep || !config_.network.is_asleep(config_.network.owner))
        return true;  // it arms the channel before it sleeps again
    armed_ = is_settled_ && delayed_acks_.is_empty() && config_.api->arm(config_.transport, number_);
    return armed_;
}

// Another thread does what is due. Behind a look at what is due.
void Channel::leave_rest() const {
    if (config_.network.on_left)
        config_.network.on_left(config_.network.owner);
}

// Channels that others have woken have nobody else: no message may come there that would make somebody poll. One whose
// lock is taken is left to its holder.
void Channel::poll_woken() {
    for (int turn = 0; turn < kTurns; ++turn)
        if (!poll_woken_once())
            return;
    leave_rest();
}

bool Channel::poll_woken_once() {
    bool moved = false;
    for (int rail = 0; rail < config_.n_rails; ++rail)
        // Pairs with Channel::wake.
        if (rails_[rail]->woken_.load(std::memory_order_seq_cst))
            moved |= rails_[rail]->poll_alone(kLook);
    return moved;
}

bool Channel::poll(int sends_to) {
    const bool moved = poll_alone(sends_to);
    if (moved && rails_)
        poll_woken();
    run_ready(moved);
    return moved;
}

void Channel::run_ready(bool moved) const {
    if (moved && config_.job.run_ready)
        config_.job.run_ready(config_.job.waiting);
}

// What there is to do, under the lock. sends_to: see poll.
bool Channel::work(int sends_to) {
    bool moved = false;
    is_settled_ = false;
    for (int round = 0; round < kRounds; ++round) {
        bool moves = send_queued();
        moves |= progress_woken();
        if (round == 0)
            moves |= take_delayed_acks();
        send_short();
        if (sends_to >= 0 && peers_[sends_to].n_busy > 1 && to_progress_.is_empty()) {
            moved |= moves;
            break;
        }
        moves |= config_.api->progress(config_.transport, number_);
        moves |= progress_queued();
        moves |= send_short();
        is_settled_ = !moves;
        if (!moves)
            break;
        moved = true;
    }
    if (finish_idle()) {
        is_settled_ = false;
        moved = true;
    }
    if (moved)
        config_.job.notify(config_.job.waiting);
    return moved;
}

// What the producers of streams that have gone idle publish from now on is told to the channel, or seen here. One fence
// for all of them: it costs an interrupt of every core that runs a thread of this process.
bool Channel::finish_idle() {
    if (going_idle_.is_empty())
        return false;
    // Again, where a stream that was listed came under pressure, and has drained since.
    while (!going_idle_.is_empty()) {
        base::counters->heavy_fences.add();
        os::heavy_fence();  // pairs with SendRing::publish_to_idle
        going_idle_.take_all([](Stream& stream) { stream.send(); });
        send_short();
    }
    return true;
}

bool Channel::send_queued() {
    Stream* stream = to_send_.exchange(nullptr, std::memory_order_acquire);  // pairs with Channel::queue
    const bool any = stream != nullptr;
    while (stream) {
        Stream* const next = stream->next_to_send.load(std::memory_order_relaxed);
        // From here on the stream may be queued again. An exchange, which no load of send passes: a thread that found
        // the stream queued has published what send sees. acq_rel: pairs with Channel::queue.
        stream->queued.exchange(false, std::memory_order_acq_rel);
        stream->send();
        stream = next;
    }
    return any;
}

bool Channel::progress_woken() {
    // Pairs with Channel::wake.
    if (!woken_.load(std::memory_order_relaxed) || !woken_.exchange(false, std::memory_order_seq_cst))
        return false;
    waiting_.take_all([&](Inbound& inbound) { queue(&inbound); });
    return true;
}

bool Channel::progress_queued() {
    const bool any = !to_progress_.is_empty();
    while (Inbound* const inbound = to_progress_.take()) inbound->progress();
    return any;
}

bool Channel::arm(bool again) {
    if (!try_lock())
        return false;
    const bool is_still_armed = !again && armed_;
    const bool moved = !is_still_armed && work(kLook);
    armed_ =
        is_still_armed || (!moved && to_send_.load(std::memory_order_acquire) == nullptr &&
                           !woken_.load(std::memory_order_relaxed) && config_.api->arm(config_.transport, number_));
    const bool idle = armed_;
    unlock();
    run_ready(moved);
    return idle && !is_due();
}

void Channel::send_single(int pe, Header header, const char* body, size_t bytes) {
    if (!try_lock())
        return;
    send_message(pe, header, body, bytes, false, nullptr, nullptr);
    unlock();
}

void Channel::protocol_error(const Header& header, const char* what) const {
    char text[256];
    snprintf(text, sizeof text, "%s (%s)", what, describe(header).data());
    protocol_error(header.pe, text);
}

void Channel::protocol_error(int pe, const char* what) const {
    base::fatal("network", "PE %d has sent what no PE of this job would send: %s", pe, what);
}

void Channel::find_address(int pe) const {
    char error[512];
    if (!config_.addresses->find(pe, config_.job.address_blob_of, error, sizeof error))
        config_.job.lost(pe, Loss::kBroken, error);
}

Endpoint* Channel::endpoint_of(int pe) {
    Peer& peer = peers_[pe];
    if (!peer.endpoint)
        peer.endpoint = connect(pe);
    return peer.endpoint;
}

// What is sent behind large data on one connection waits until all of that is through.
Endpoint* Channel::large_endpoint_of(int pe) {
    Endpoint* const usual = endpoint_of(pe);
    if (!usual || !config_.parts_large)
        return usual;
    Peer& peer = peers_[pe];
    if (!peer.large_endpoint)
        peer.large_endpoint = connect(pe);
    return peer.large_endpoint;
}

// A new endpoint, on which this PE's address blob is the first message; null: there can be none, and the PE is lost.
Endpoint* Channel::connect(int pe) {
    char error[512] = "";
    const std::string* const address_blob =
        config_.addresses->find(pe, config_.job.address_blob_of, error, sizeof error);
    size_t bytes = address_blob ? address_blob->size() : 0;
    const char* mine_there = address_blob ? address_blob->data() : nullptr;
    Endpoint* made = nullptr;
    if (bytes != 0 && !find_rail_address(&mine_there, &bytes, config_.rail))
        snprintf(error, sizeof error, "its address blob has no rail %d: right would be as many rails on all PEs",
                 config_.rail);
    else if (bytes != 0)
        made = config_.api->connect(config_.transport, number_, pe, mine_there, bytes, error, sizeof error);
    if (!made) {
        config_.job.lost(pe, Loss::kBroken, error);
        return nullptr;
    }
    char mine[kMaxAddressBlobBytes];
    const size_t mine_bytes = config_.network.own_address_blob(config_.network.owner, mine);
    char* const copy = static_cast<char*>(malloc(mine_bytes));
    if (!copy)
        base::fatal("network", "no memory for a message of %zu bytes", mine_bytes);
    memcpy(copy, mine, mine_bytes);
    send_to(made, pe, ConnectHeader{}, copy, mine_bytes, false, free, copy);
    return made;
}

void Channel::send_message(int pe, Header header, const char* body, size_t bytes, bool large, Done done,
                           void* argument) {
    HEDDLE_INVARIANT_MSG(pe >= 0 && pe < config_.n_pes, "pe %d", pe);
    // The receiver has places for large data alone.
    HEDDLE_INVARIANT(!large || header.kind == MessageKind::kLargeData || header.kind == MessageKind::kLargeReply);
    HEDDLE_INVARIANT(body || bytes == 0);
    Endpoint* const to = large ? large_endpoint_of(pe) : endpoint_of(pe);
    if (!to)
        return;
    if (header.kind == MessageKind::kRecords)
        piggyback_ack(pe, &header);
    send_to(to, pe, header, body, bytes, large, done, argument);
}

void Channel::send_to(Endpoint* to, int pe, Header header, const char* body, size_t bytes, bool large, Done done,
                      void* argument) {
    base::counters->messages_sent.add_cheaply();
    base::note_slow_event(base::SlowEvent::kMessageSent, pe, bytes);
    base::counters->bytes_sent.add_cheaply(bytes);
    header.token = config_.token;
    header.pe = config_.pe;
    config_.api->send(config_.transport, number_, to, &header, body, bytes, large, done, argument);
}

void Channel::receive(int pe, Arrival* arrival, char* to, size_t bytes, Done done, void* argument) {
    asked_.store(asked() + bytes, std::memory_order_relaxed);
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

// Messages of strangers are refused; the first one is reported.
bool Channel::is_from_job(const Header& header) {
    if (header.token == config_.token && header.pe >= 0 && header.pe < config_.n_pes)
        return true;
    if (!refused_)
        base::report("network", "refused a message that does not come from this job");
    refused_ = true;
    return false;
}

Stream& Channel::stream_of(const Header& header, uint32_t stream_set) const {
    Stream* const stream = config_.network.stream_of(config_.network.owner, stream_set, header.pe);
    if (!stream || &stream->channel() != this)
        protocol_error(header, "an answer to what this PE has not sent");
    return *stream;
}

void Channel::acknowledged(const Header& header, uint32_t stream_set, uint64_t position) const {
    if (!stream_of(header, stream_set).on_ack(position))
        protocol_error(header, "an acknowledgement of what this PE has not sent");
}

Inbound& Channel::inbound_of(int pe, uint32_t stream_set) {
    Peer& peer = peers_[pe];
    if (stream_set < peer.n_inbounds && peer.inbounds[stream_set])
        return *peer.inbounds[stream_set];
    if (stream_set >= kMaxStreamSets)
        protocol_error(pe, "records of a stream set that no PE has");
    RailWatermarks* const watermarks =
        config_.n_rails > 1 ? config_.network.watermarks_of(config_.network.owner, stream_set, pe) : nullptr;
    Inbound*& place = make_place(peer, stream_set);
    place = new Inbound(*this, pe, stream_set, watermarks);
    return *place;
}

Inbound*& Channel::make_place(Peer& peer, uint32_t stream_set) const {
    const uint32_t count = peer.n_inbounds;
    if (stream_set >= count) {
        uint32_t grown = count ? count : 4;
        while (grown <= stream_set) grown *= 2;
        auto* const inbounds = static_cast<Inbound**>(realloc(peer.inbounds, grown * sizeof(Inbound*)));
        if (!inbounds)
            base::fatal("network", "no memory for a table of %u streams of a PE", grown);
        std::fill(inbounds + count, inbounds + grown, nullptr);
        peer.inbounds = inbounds;
        peer.n_inbounds = grown;
    }
    return peer.inbounds[stream_set];
}

void Channel::arrived(const Header& header, const char* body, size_t bytes) {
    if (!is_from_job(header))
        return;
    base::counters->messages_received.add_cheaply();
    base::note_slow_event(base::SlowEvent::kMessageReceived, header.pe, bytes);
    base::counters->bytes_received.add_cheaply(bytes);
    if (header.sequence != 0)
        base::fatal("network", "PE %d has another HEDDLE_RAIL_LOSS than this one: right would be the same on all PEs",
                    header.pe);
    dispatch(header, body, bytes);
}

void Channel::dispatch(const Header& header, const char* body, size_t bytes) {
    switch (header.kind) {
        case MessageKind::kConnect:
            if (bytes == 0 || bytes > kMaxAddressBlobBytes)
                protocol_error(header, "an address blob of no or too many bytes");
            return config_.addresses->learn(header.pe, body, bytes);
        case MessageKind::kRecords: {
            const auto records = header.as<RecordsHeader>();
            if (records.acked_stream_set != 0)
                acknowledged(header, records.acked_stream_set - 1, records.acked);
            return inbound_of(header.pe, records.stream_set).on_records(records.position, body, bytes);
        }
        case MessageKind::kAck: {
            const auto ack = header.as<AckHeader>();
            return acknowledged(header, ack.stream_set, ack.position);
        }
        case MessageKind::kReply: {
            const auto reply = header.as<ReplyHeader>();
            Stream& stream = stream_of(header, reply.stream_set);
            if (!stream.on_reply(reply.first, reply.count, body, bytes) || !stream.on_ack(reply.acked))
                protocol_error(header, "a reply to what this PE has not asked");
            return;
        }
        case MessageKind::kGathered: {
            const char* const wrong = read_gathered(
                header.as<GatheredHeader>(), body, bytes,
                [&](const AckSection& ack) { acknowledged(header, ack.stream_set, ack.position); },
                [&](const RecordsSection& section, const char* records) {
                    inbound_of(header.pe, section.stream_set).on_records(section.position, records, section.bytes);
                });
            if (wrong)
                protocol_error(header, wrong);
            return;
        }
        case MessageKind::kHeartbeat:
            return config_.network.on_heartbeat(config_.network.owner, header, body, bytes);
        case MessageKind::kLargeData:
        case MessageKind::kLargeReply:
            break;  // are announced
    }
    protocol_error(header, "a message of an unknown kind");
}

namespace {

void on_large_reply_done(void* argument) {
    auto* reply = static_cast<Channel::LargeReply*>(argument);
    reply->stream->channel().count_arrived(reply->bytes);
    reply->stream->on_large_reply(reply->number);
    delete reply;
}

}  // namespace

Channel::LargeReply Channel::place_of(const Header& header, size_t bytes) const {
    const auto fields = header.as<LargeReplyHeader>();
    LargeReply reply = {&stream_of(header, fields.stream_set), fields.number, nullptr, bytes};
    reply.to = reply.stream->place_of_large_reply(&reply.number, bytes);
    if (!reply.to)
        protocol_error(header, "a large reply to what this PE has not asked");
    return reply;
}

void Channel::announced(const Header& header, size_t bytes, Arrival* arrival) {
    if (!is_from_job(header))
        return refuse(arrival);
    base::counters->messages_received.add_cheaply();
    base::note_slow_event(base::SlowEvent::kMessageReceived, header.pe, bytes);
    base::counters->bytes_received.add_cheaply(bytes);
    switch (header.kind) {
        case MessageKind::kLargeData: {
            const auto data = header.as<LargeDataHeader>();
            return inbound_of(header.pe, data.stream_set).on_large(data.position, bytes, arrival);
        }
        case MessageKind::kLargeReply: {
            const LargeReply reply = place_of(header, bytes);
            return receive(header.pe, arrival, reply.to, bytes, on_large_reply_done, new LargeReply(reply));
        }
        default:
            protocol_error(header, "a large message of an unknown kind");
    }
}

}  // namespace heddle::fabric
