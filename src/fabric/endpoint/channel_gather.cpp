// Channel, the part that gathers: short messages of records and acks that leave to one PE together.
#include "fabric/endpoint/channel.h"

namespace heddle::fabric {

void Channel::ack(Inbound& inbound) {
    Peer& peer = peers_[inbound.pe()];
    peer.add_ack(inbound);
    peer.ack_due = true;
    peers_to_send_.add(peer);
}

void Channel::delay_ack(Inbound& inbound) {
    Peer& peer = peers_[inbound.pe()];
    peer.add_ack(inbound);
    if (peer.n_acks >= kMaxBusy)
        return ack(inbound);
    delayed_acks_.add(peer);
    ack_pending_.store(true, std::memory_order_relaxed);  // a hint for the service thread
}

// The delayed acks that no message has carried since the last poll leave in this turn.
bool Channel::take_delayed_acks() {
    const bool any = !delayed_acks_.is_empty();
    ack_pending_.store(false, std::memory_order_relaxed);
    delayed_acks_.take_all([&](Peer& peer) {
        peer.ack_due = true;
        peers_to_send_.add(peer);
    });
    return any;
}

// The header of records to pe takes an ack along.
void Channel::piggyback_ack(int pe, Header* header) {
    Inbound* const inbound = peers_[pe].take_ack();
    if (!inbound)
        return;
    auto records = header->as<RecordsHeader>();
    records.acked_stream_set = inbound->stream_set() + 1;
    records.acked = inbound->ack_position();
    header->set(records);
}

void Channel::gather(Stream& stream) {
    Peer& peer = peers_[stream.pe()];
    peer.streams.add(stream);
    peers_to_send_.add(peer);
}

void Channel::count_busy(int pe, int by) {
    Peer& peer = peers_[pe];
    HEDDLE_INVARIANT(by > 0 || peer.n_busy != 0);
    peer.n_busy += static_cast<uint32_t>(by);
    if (by < 0)
        peers_to_send_.add(peer);
}

void Channel::on_ack_from(int pe) {
    Peer& peer = peers_[pe];
    peer.was_acked = true;
    peers_to_send_.add(peer);
}

// Sends what peers have gathered in this turn: true when anything was. Ends although producers go on: a stream that is
// listed again has sent before, and sends at most kWindow ahead of an ack. None is taken here.
bool Channel::send_short() {
    bool any = false;
    while (const Peer* const peer = peers_to_send_.take()) any |= send_short(static_cast<int>(peer - peers_));
    return any;
}

// With several rails a stream may wait at the target for another rail, whose records would wait here for an ack of that
// stream: there nothing waits for acks.
bool Channel::send_short(int pe) {
    Peer& peer = peers_[pe];
    const bool may_send = peer.n_busy < kMaxBusy || peer.was_acked || config_.n_rails > 1;
    peer.was_acked = false;
    const auto take_stream = [&] { return may_send ? peer.streams.take() : nullptr; };
    Stream* stream = take_stream();
    if (!stream && !peer.ack_due)
        return false;
    peer.ack_due = false;
    if (peer.n_acks <= 1 && (!may_send || peer.streams.is_empty())) {
        if (stream)
            stream->send_short(nullptr);
        if (Inbound* const inbound = peer.take_ack())
            send_message(pe, AckHeader{.position = inbound->ack_position(), .stream_set = inbound->stream_set()},
                         nullptr, 0, false, nullptr, nullptr);
        return true;
    }
    GatheredMessage message;
    while (Inbound* const inbound = peer.take_ack()) {
        if (!message.has_room(0))
            send_gathered(pe, &message);
        message.add(AckSection{.position = inbound->ack_position(), .stream_set = inbound->stream_set()});
    }
    for (; stream; stream = take_stream()) stream->send_short(&message);
    send_gathered(pe, &message);
    return true;
}

void Channel::add_records(GatheredMessage* message, const Stream& stream, const SendRing::Message& records) {
    if (!message->has_room(records.bytes))
        send_gathered(stream.pe(), message);
    message->add(RecordsSection{.position = records.position,
                                .stream_set = stream.stream_set(),
                                .bytes = static_cast<uint32_t>(records.bytes)},
                 records.records);
}

void Channel::send_gathered(int pe, GatheredMessage* message) {
    if (message->is_empty())
        return;
    const GatheredHeader header = message->header();
    const size_t bytes = message->bytes();
    char* const body = message->take_body();
    send_message(pe, header, body, bytes, false, GatheredMessage::release, body);
}

}  // namespace heddle::fabric
