#include "fabric/endpoint/stream.h"

#include "base/error.h"
#include "fabric/endpoint/channel.h"
#include "fabric/multirail/rail_scheduler.h"
#include "fabric/protocol/message.h"
#include "os/clock.h"
#include "progress/wait_policy.h"

namespace heddle::fabric {

Stream::Stream(Channel& channel, Producer& producer, int pe, StreamGroup& group)
    : ring_(channel.config().full_bytes),
      group_(group),
      index_(group.next_index()),
      channel_(channel),
      producer_(producer),
      pe_(pe),
      put_path_(channel.config().is_native ? PutPath::kUnknown : PutPath::kRecords) {
    HEDDLE_INVARIANT(static_cast<const void*>(ring_.head()) == this);  // as Stream::with has it
}

// --- The producer

void Stream::make_room(const char* function, size_t bytes) {
    RingQuota& quota = producer_.quota;
    const bool is_easy = ring_.size() < RingQuota::kEasyRing && ring_.is_free();
    if (!is_easy && ring_.find_room(bytes))
        return;
    const bool may_grow = ring_.size() < kMaxRing && quota.allow(3 * ring_.size());
    const bool grows = may_grow || bytes > ring_.size();  // behind the question, which may have taken the ring back
    const auto is_ready = [&] { return grows ? ring_.is_free() : ring_.find_room(bytes); };
    if (!is_ready()) {
        flush();
        channel_.wait(function, ring_.freed_line(), is_ready);
    }
    if (grows)
        quota.lend(*this, ring_, bytes);
    if (!ring_.find_room(bytes))
        base::fatal(function, "no memory for a ring that takes a record of %zu bytes", bytes);
}

bool Stream::give_back() {
    if (!ring_.is_free())
        return false;
    producer_.quota.take_back(ring_);
    returns_.shrink();
    return true;
}

void Stream::send_published() {
    const bool full = ring_.end_message();
    mark_active();
    channel_.queue(this);
    const bool is_left = !full && producer_.expected_wait.is_expected() && channel_.is_polled_soon();
    if (!is_left)
        channel_.poll(full ? Channel::kLook : pe_);
    ring_.rewind();
    if (channel_.is_crowded())
        producer_.expected_wait.posted(os::now_ns(), is_left);
    if (full && rails)
        rails->on_message_full();
}

void Stream::flush() {
    ring_.flush();
    channel_.queue(this);
}

void Stream::wait_for_body(const char* function) {
    if (bodies_.has_space())
        return;
    flush();
    channel_.wait(function, bodies_.line(), [&] { return bodies_.has_space(); });
}

void Stream::put_large(const char* function, Address to, const char* from, size_t bytes) {
    wait_for_body(function);
    char* const at = reserve(function, record::kMaxShort);
    channel_.count_large(1);
    bodies_.post({.position = position(), .from = from, .bytes = bytes});  // ahead of its record
    publish(record::large(at, to, bytes));
    last_large_ = position();
}

bool Stream::find_put_path(const char* function) {
    // Acquire: pairs with Stream::send_ready.
    const auto is_found = [&] { return put_path_.load(std::memory_order_acquire) != PutPath::kUnknown; };
    channel_.send(this);
    channel_.wait(function, &put_path_, is_found);
    return put_path_.load(std::memory_order_relaxed) == PutPath::kNative;
}

void Stream::post_native(const char* function, Body body) {
    wait_for_return(function);
    returns_.take_native(this);
    body.position = position();
    body.returns = returns_.head();
    wait_for_body(function);
    bodies_.post(body);
    mark_active();
    if (!is_complete(position()))
        flush();
    channel_.send(this);
}

void Stream::put_native(const char* function, Address to, const char* from, size_t bytes) {
    post_native(function, {.position = 0, .from = from, .bytes = bytes, .at = to});
    fence_.on_put(returns_.head());
}

void Stream::get_native(const char* function, char* to, Address from, size_t bytes) {
    post_native(function, {.position = 0, .from = nullptr, .bytes = bytes, .at = from, .to = to});
}

void Stream::hold(const char* function) {
    if (fence_.is_held())
        return;
    if (const uint64_t until = fence_.held_until(); !has_returned(until))
        channel_.wait(function, returns_.line(), [&] { return has_returned(until); });
    fence_.hold(position());
}

void Stream::wait_for_natives(const char* function) {
    if (!fence_.is_clear())
        channel_.wait(function, returns_.line(), [&] { return fence_.is_clear(); });
}

void Stream::wait_for_return(const char* function) {
    if (returns_.has_space())
        return;
    const bool grows = returns_.should_grow();
    const auto is_ready = [&] { return grows ? has_returned(returns_.head()) : returns_.has_space(); };
    if (!is_ready()) {
        flush();
        channel_.wait(function, returns_.line(), is_ready);
    }
    if (grows)
        returns_.grow();
}

void Stream::expect_return(const char* function, void* to, size_t bytes) {
    wait_for_return(function);
    if (bytes >= kLargeBytes)
        channel_.count_large(1);
    returns_.take(static_cast<char*>(to), bytes);
}

// --- The sender

void Stream::send() {
    send_ready();
    if (const bool gathers = !ring_.is_idle(); gathers != gathers_) {
        gathers_ = gathers;
        producer_.n_gathering.fetch_add(gathers ? 1 : UINT32_MAX, std::memory_order_relaxed);
    }
}

void Stream::send_ready() {
    // Release: pairs with Stream::is_native and Stream::find_put_path.
    if (put_path_.load(std::memory_order_relaxed) == PutPath::kUnknown)
        put_path_.store(channel_.is_native(pe_) ? PutPath::kNative : PutPath::kRecords, std::memory_order_release);
    send_bodies();
    for (;;) {
        const uint64_t limit = this->limit();
        if (limit == ring_.sent()) {
            if (fence_.is_holding())
                return;  // resume leads here again
            if (ring_.is_drained() && !ring_.is_idle() && ring_.go_idle(producer_))
                channel_.finish_idle_of(*this);
            if (ring_.published() == ring_.sent())
                return rest();
            continue;
        }
        SendRing::Message message;
        if (!ring_.take_message(limit, this, &message, kShortMessage, holds()))
            return;
        if (!message.sending)
            return gather();
        end_busy();
        send_message(message);
        send_bodies();
    }
}

// What has been published, and no fence holds.
uint64_t Stream::limit() const {
    const uint64_t published = ring_.published();
    return fence_.is_holding() ? fence_.limit(published) : published;
}

// Records that fill no message wait: a session of the context is open. Who ends it flushes what has been published.
bool Stream::holds() const {
    if (!producer_.may_batch())
        return false;
    // Pairs with operations::remote_batch: it sees what has been published, or the end of the session is seen here.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return producer_.may_batch();
}

void Stream::send_message(const SendRing::Message& message) {
    channel_.send_message(pe_, RecordsHeader{.position = message.position, .stream_set = stream_set()}, message.records,
                          message.bytes, false, on_sent, message.sending);
}

// The peer's list, which leads to send_short. A producer that goes on meanwhile need not call for every record.
void Stream::gather() {
    const uint64_t published = ring_.published();
    if (!gathering.is_listed)
        gathered_at_ = published;
    else if (gathered_at_ != published)
        ring_.begin_pressure();
    channel_.gather(*this);
}

void Stream::send_short(GatheredMessage* into) {
    const uint64_t limit = this->limit();
    const bool was_drained = ring_.is_drained();
    SendRing::Message message;
    if (limit != ring_.sent() && ring_.take_message(limit, this, &message, 0, holds())) {
        if (message.bytes >= kShortMessage)
            end_busy();
        else if (was_drained)
            begin_busy();
        if (into && message.bytes < kShortMessage) {
            channel_.add_records(into, *this, message);
            ring_.on_sent(message.sending);
        } else {
            send_message(message);
        }
    }
    send();
}

void Stream::begin_busy() {
    if (!is_busy_)
        channel_.count_busy(pe_, 1);
    is_busy_ = true;
}

void Stream::end_busy() {
    if (is_busy_)
        channel_.count_busy(pe_, -1);
    is_busy_ = false;
}

// The body of a record follows its record; a native transfer waits until all records before it are complete.
void Stream::send_bodies() {
    while (const Body* const next = bodies_.next()) {
        if (next->returns != 0 && (!is_complete(next->position) || !fence_.lets_pass(next->returns)))
            return;
        if (next->returns == 0 && next->position >= ring_.sent())
            return;
        const Body body = bodies_.start();
        if (body.returns != 0) {
            send_native(body);
            continue;
        }
        end_busy();
        channel_.send_message(pe_, LargeDataHeader{.position = body.position, .stream_set = stream_set()}, body.from,
                              body.bytes, true, on_body_sent, this);
    }
}

void Stream::on_sent(void* argument) {
    auto* const sending = static_cast<SendRing::Sending*>(argument);
    Stream& stream = *sending->stream;
    stream.ring_.on_sent(sending);
    if (stream.ring_.published() != stream.ring_.sent())
        stream.channel_.queue(&stream);
}

void Stream::on_body_sent(void* argument) {
    Stream& stream = *static_cast<Stream*>(argument);
    stream.channel_.count_large(-1);
    stream.bodies_.on_sent();
    stream.rest();
}

void Stream::send_native(const Body& body) {
    ReturnRing::Return& entry = returns_.begin_native(body.returns - 1);
    if (body.from)
        channel_.put(pe_, body.at, body.from, body.bytes, on_native_done, &entry);
    else
        channel_.get(pe_, body.at, body.to, body.bytes, on_native_done, &entry);
}

void Stream::on_native_done(void* argument) {
    auto* const entry = static_cast<ReturnRing::Return*>(argument);
    Stream& stream = *entry->stream;
    const bool was_holding = stream.fence_.is_holding();
    stream.returns_.finish(*entry);
    stream.resume(was_holding);
    stream.bodies_.on_sent();
    stream.rest();
}

bool Stream::on_ack(uint64_t position) {
    const uint64_t before = acked();
    if (!ring_.on_ack(position))
        return false;
    if (acked() == before)
        return true;
    if (ring_.is_drained())
        end_busy();
    channel_.on_ack_from(pe_);
    send();
    return true;
}

bool Stream::on_reply(uint64_t first, uint32_t count, const char* body, size_t bytes) {
    const bool was_holding = fence_.is_holding();
    const bool asked = returns_.on_reply(first, count, body, bytes);
    resume(was_holding);
    rest();
    return asked;
}

void Stream::on_large_reply(uint64_t number) {
    const bool was_holding = fence_.is_holding();
    channel_.count_large(-1);
    returns_.finish(number);
    resume(was_holding);
    rest();
}

// Behind returns that are done. Where a fence has ended, what it held leaves, or the stream goes idle: nothing else may
// be in flight that would lead to send.
void Stream::resume(bool was_holding) {
    if (was_holding && !fence_.is_holding())
        channel_.queue(this);
}

// What was outstanding last may be done. Where the producer knows the stream to be idle, what it publishes behind these
// looks is marked by it. Channel::finish_idle leads here again where it does not know yet.
void Stream::rest() {
    if (ring_.is_idle() && !going_idle.is_listed)
        group_.clear(index_, *producer_.n_active, [this] { return is_quiet() && is_local(); });
}

}  // namespace heddle::fabric
