#include "fabric/endpoint/send_ring.h"

#include <algorithm>

namespace heddle::fabric {

namespace {
thread_local char thread_token;
}

const void* this_thread() {
    return &thread_token;
}

const void* ended_thread() {
    static const char token = 0;
    return &token;
}

// --- The producer

void SendRing::set_room(uint64_t freed) {
    const uint64_t lap = lap_.load(std::memory_order_relaxed);
    room_end_ = freed >= lap ? lap_end_ : std::min(lap_end_, lap + (freed - lap_before_));
    set_simple_end();
    // What the transport may still read is not overwritten.
    HEDDLE_INVARIANT_MSG(freed <= position() && position() <= room_end_ && lap_before_ <= freed,
                         "freed %#zx, position %#zx", size_t{freed}, size_t{position()});
}

// The sender has come to the lap that ends here, or has sent all. It looks at the base again where a record of the next
// lap is published. So neither lap_ nor the base is written while the sender may need what they were.
void SendRing::begin_lap(uint64_t freed) {
    const uint64_t begin = position();
    lap_before_ = lap_.load(std::memory_order_relaxed);
    head_.base = reinterpret_cast<uintptr_t>(memory_) - begin;
    lap_end_ = begin + size_;
    lap_.store(begin, std::memory_order_relaxed);  // SendRing::publish_to_idle orders it ahead of the lap's records
    set_room(freed);
}

char* SendRing::set_memory(char* memory, size_t bytes) {
    HEDDLE_INVARIANT(is_free());
    char* const before = memory_;
    memory_ = memory;
    size_ = bytes;
    if (bytes != 0)
        last_size_ = bytes;
    begin_lap(position());
    return before;
}

bool SendRing::find_room(size_t bytes) {
    const uint64_t freed = freed_.load(std::memory_order_acquire);  // pairs with SendRing::on_sent
    set_room(freed);
    if (has_room(bytes))
        return true;
    const uint64_t lap = lap_.load(std::memory_order_relaxed);
    if (bytes > size_ || freed < lap || (freed != position() && freed - lap < bytes))
        return false;
    begin_lap(freed);
    HEDDLE_INVARIANT(has_room(bytes));
    return true;
}

bool SendRing::end_message() {
    const uint64_t head = position();
    if (head < full_at_)
        return false;
    const uint32_t count = message_end_count_.load(std::memory_order_relaxed);
    if (!message_ends_)
        message_ends_ = std::make_unique<std::atomic<uint64_t>[]>(kMaxMessageEnds);
    message_ends_[count % kMaxMessageEnds].store(head, std::memory_order_relaxed);
    message_end_count_.store(count + 1, std::memory_order_release);  // pairs with SendRing::find_message_end
    full_at_ = head + full_bytes_;
    // What is left of the lap would be a short message among full ones.
    if (full_at_ > lap_end_ && lap_end_ - lap_.load(std::memory_order_relaxed) > 2 * full_bytes_)
        lap_end_ = room_end_ = head;
    set_simple_end();
    return true;
}

// --- The sender

// As the picture at the top of the header has it.
void SendRing::check_positions() const {
    const uint64_t acked = acked_.load(std::memory_order_relaxed), freed = freed_.load(std::memory_order_relaxed),
                   published = published_ref().load(std::memory_order_relaxed);
    HEDDLE_INVARIANT_MSG(acked <= sent_, "acked %#zx, sent %#zx", size_t{acked}, size_t{sent_});
    HEDDLE_INVARIANT_MSG(freed <= sent_, "freed %#zx, sent %#zx", size_t{freed}, size_t{sent_});
    HEDDLE_INVARIANT_MSG(sent_ <= published, "sent %#zx, published %#zx", size_t{sent_}, size_t{published});
    HEDDLE_INVARIANT(sending_head_ - sending_tail_ <= kMaxSending);
    // What is in use between freed and sent is in messages that the transport has.
    HEDDLE_INVARIANT((sending_head_ == sending_tail_) == (freed == sent_));
}

// The end of the oldest full message behind sent_ and not behind limit; false: there is none. An end that was written
// over by a newer one is behind limit, or an end just as well.
bool SendRing::find_message_end(uint64_t limit, uint64_t* end) {
    const uint32_t count = message_end_count_.load(std::memory_order_acquire);  // pairs with SendRing::end_message
    if (count - message_ends_used_ > kMaxMessageEnds)
        message_ends_used_ = count - kMaxMessageEnds;
    for (; message_ends_used_ != count; ++message_ends_used_) {
        const uint64_t message_end =
            message_ends_[message_ends_used_ % kMaxMessageEnds].load(std::memory_order_relaxed);
        if (message_end > limit)
            return false;
        if (message_end > sent_) {
            ++message_ends_used_;
            *end = message_end;
            return true;
        }
    }
    return false;
}

bool SendRing::take_message(uint64_t limit, Stream* stream, Message* message, size_t short_bytes, bool holds) {
    check_positions();
    const uint64_t acked = acked_.load(std::memory_order_relaxed);
    if (sent_ - acked >= kWindow || sending_head_ - sending_tail_ == kMaxSending)
        return false;  // an ack, or on_sent, leads here again
    // Relaxed: SendRing::published has shown the lap of all records before the limit. The lap of records behind it may
    // be seen as well, which changes nothing.
    const uint64_t lap = lap_.load(std::memory_order_relaxed);
    if (sent_ == lap)
        sent_base_ = head_.base;
    const bool ends_lap = sent_ < lap && lap <= limit;
    if (ends_lap)
        limit = lap;
    uint64_t end = limit;
    const bool full = find_message_end(limit, &end) || ends_lap;
    const bool flushed = flush_up_to_.load(std::memory_order_acquire) > sent_;  // pairs with SendRing::flush
    const bool in_flight = sent_ != acked;
    if ((in_flight || holds) && !full && !flushed) {
        begin_pressure();  // the records gather until all in flight is acknowledged, or until they are flushed
        return false;
    }
    HEDDLE_INVARIANT_MSG(sent_ < end && end <= limit, "sent %#zx, end %#zx, limit %#zx", size_t{sent_}, size_t{end},
                         size_t{limit});
    HEDDLE_INVARIANT(end - sent_ <= size());  // a message lies in the memory as one piece
    *message = {sent_, reinterpret_cast<const char*>(sent_base_ + sent_), end - sent_, nullptr};
    if (!full && message->bytes < short_bytes)
        return true;
    if (in_flight)
        begin_pressure();
    Sending& sending = sending_[sending_head_++ % kMaxSending];
    sending.stream = stream;
    sending.end = end;
    sending.done = 0;
    message->sending = &sending;
    sent_ = end;
    return true;
}

void SendRing::on_sent(Sending* sending) {
    HEDDLE_INVARIANT(!sending->done);  // the transport lets go of a message once
    sending->done = 1;
    uint64_t freed = 0;
    while (sending_tail_ != sending_head_) {
        const Sending& oldest = sending_[sending_tail_ % kMaxSending];
        HEDDLE_INVARIANT(uint64_t{oldest.end} > freed && uint64_t{oldest.end} <= sent_);  // messages follow each other
        if (!oldest.done)
            break;
        freed = oldest.end;
        ++sending_tail_;
    }
    // Release: pairs with SendRing::find_room, SendRing::is_free and SendRing::has_space.
    if (freed != 0)
        freed_.store(freed, std::memory_order_release);
    check_positions();
}

bool SendRing::on_ack(uint64_t position) {
    if (position > sent_)
        return false;
    if (position > acked_.load(std::memory_order_relaxed))
        acked_.store(position, std::memory_order_release);  // pairs with SendRing::is_complete
    check_positions();
    return true;
}

// The producer is looked at behind the store: a thread that takes the stream set over fences first, which shows it the
// store or shows this thread the new producer (Network::make_stream_set).
bool SendRing::go_idle(const Producer& producer) {
    HEDDLE_INVARIANT(is_drained());  // otherwise an ack is on its way, and sends what waits
    idle_ref().store(1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    return producer.thread.load(std::memory_order_relaxed) != this_thread();
}

}  // namespace heddle::fabric
