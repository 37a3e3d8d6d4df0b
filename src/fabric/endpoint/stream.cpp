#include "fabric/endpoint/stream.h"

#include "base/error.h"
#include "fabric/endpoint/channel.h"
#include "fabric/multirail/rail_scheduler.h"
#include "fabric/protocol/message.h"
#include "os/asymmetric_fence.h"
#include "os/memfd.h"
#include "progress/wait_policy.h"

#include <heddle/hot_path.h>
#include <algorithm>

namespace heddle::fabric {

namespace {

// One value of a reply to where the program wants it: untorn, as a load by a neighbour would be. Neither place need be
// aligned.
template <class T>
void bring_value(char* to, const char* from) {
    T value;
    memcpy(&value, from, sizeof value);
    if (reinterpret_cast<uintptr_t>(to) % sizeof value == 0)
        heddle_store(to, &value, sizeof value);
    else
        memcpy(to, &value, sizeof value);
}

void bring(char* to, const char* from, size_t bytes) {
    switch (bytes) {
        case 2:
            return bring_value<uint16_t>(to, from);
        case 4:
            return bring_value<uint32_t>(to, from);
        case 8:
            return bring_value<uint64_t>(to, from);
        default:
            memcpy(to, from, bytes);
    }
}

thread_local char thread_token;

}  // namespace

const void* this_thread() {
    return &thread_token;
}

Stream::Stream(Channel& channel, const Producer& producer, int pe)
    : channel_(channel),
      producer_(producer),
      pe_(pe),
      put_path_(channel.config().is_native ? PutPath::kUnknown : PutPath::kRecords) {
    full_at_ = channel_.config().full_bytes;
    grow(kMinRing);
}

Stream::~Stream() {
    if (ring_)
        os::unmap(ring_, 2 * (mask_ + 1));
    delete[] return_ring_;
    delete[] bodies_;
}

// --- The producer

// Nothing of the ring is in use. Ends the PE when there is no memory for a first one: an operation has no way to fail.
void Stream::grow(size_t bytes) {
    size_t size = kMinRing;
    while (size < bytes || size % os::page_bytes() != 0) size *= 4;
    char* ring = static_cast<char*>(os::map_twice(size));
    if (!ring && ring_)
        return;  // goes on with what it has, where that is enough
    if (!ring)
        base::fatal("network", "no memory for a ring of %zu bytes", size);
    if (ring_)
        os::unmap(ring_, 2 * (mask_ + 1));
    ring_ = ring;
    mask_ = size - 1;
    stop_ = freed_.load(std::memory_order_acquire) + size;
    simple_up_to_ = std::min(stop_, full_at_);
}

void Stream::make_space(const char* function, size_t bytes) {
    const uint64_t head = position();
    const auto all_free = [&] { return freed_.load(std::memory_order_acquire) == head; };  // pairs with on_sent
    const auto has_space = [&] {
        stop_ = freed_.load(std::memory_order_acquire) + mask_ + 1;  // pairs with on_sent
        simple_up_to_ = std::min(stop_, full_at_);
        return head + bytes <= stop_;
    };
    const size_t size = mask_ + 1;
    const bool too_small = bytes > size;
    if (!too_small && has_space())
        return;
    flush();
    const bool grows = too_small || size < kMaxRing;
    channel_.wait(function, &freed_, [&] { return grows ? all_free() : has_space(); });
    if (grows)
        grow(std::max(2 * bytes, 4 * size));
    if (bytes > mask_ + 1)
        base::fatal(function, "no memory for a ring that takes a record of %zu bytes", bytes);
}

void Stream::send_published() {
    const uint64_t head = position();
    const bool full = head >= full_at_;
    if (full) {
        const uint32_t count = message_end_count_.load(std::memory_order_relaxed);
        message_ends_[count % kMaxMessageEnds].store(head, std::memory_order_relaxed);
        message_end_count_.store(count + 1, std::memory_order_release);  // pairs with send
        full_at_ = head + channel_.config().full_bytes;
        simple_up_to_ = std::min(stop_, full_at_);
    }
    channel_.send(this);
    if (full && rails)
        rails->on_message_full();
}

void Stream::flush() {
    flush_up_to_.store(published(), std::memory_order_release);  // pairs with send
    channel_.queue(this);
}

void Stream::post_body(const char* function, Body body) {
    if (!bodies_)
        bodies_ = new Body[kMaxBodies];
    const uint64_t posted = bodies_posted_.load(std::memory_order_relaxed);
    if (posted - bodies_sent_.load(std::memory_order_acquire) == kMaxBodies) {
        flush();
        channel_.wait(function, &bodies_sent_,
                      [&] { return posted - bodies_sent_.load(std::memory_order_acquire) < kMaxBodies; });
    }
    bodies_[posted % kMaxBodies] = body;
    bodies_posted_.store(posted + 1, std::memory_order_release);  // pairs with send_bodies
}

void Stream::put_large(const char* function, Address to, const char* from, size_t bytes) {
    char* const at = reserve(function, record::kMaxShort);
    post_body(function, {position(), from, bytes});  // ahead of its record
    publish(record::large(at, to, bytes));
    last_large_ = position();
}

bool Stream::find_put_path(const char* function) {
    // pairs with send
    const auto is_found = [&] { return put_path_.load(std::memory_order_acquire) != PutPath::kUnknown; };
    channel_.send(this);
    channel_.wait(function, &put_path_, is_found);
    return put_path_.load(std::memory_order_relaxed) == PutPath::kNative;
}

void Stream::post_native(const char* function, Body body, char* to) {
    take_return(function, to, 0, true);
    body.position = position();
    body.number = return_head_;
    post_body(function, body);
    if (!is_complete(position()))
        flush();
    channel_.send(this);
}

void Stream::put_native(const char* function, Address to, const char* from, size_t bytes) {
    post_native(function, {0, from, bytes, to}, nullptr);
    last_native_ = return_head_;
}

void Stream::get_native(const char* function, char* to, Address from, size_t bytes) {
    post_native(function, {0, nullptr, bytes, from}, to);
}

// One fence is held for; a second one behind more native puts waits for the first. What is before the fence never waits
// for what is held, so that neither stands for ever.
void Stream::hold(const char* function) {
    const uint64_t until = hold_until_.load(std::memory_order_relaxed);
    if (until == last_native_)
        return;
    if (!has_returned(until))
        channel_.wait(function, &returned_, [&] { return has_returned(until); });
    hold_at_.store(position(), std::memory_order_relaxed);
    hold_until_.store(last_native_, std::memory_order_release);  // pairs with is_holding
}

void Stream::wait_for_natives(const char* function) {
    if (!has_returned(last_native_))
        channel_.wait(function, &returned_, [&] { return has_returned(last_native_); });
}

void Stream::expect_return(const char* function, void* to, size_t bytes) {
    take_return(function, to, bytes, false);
}

void Stream::take_return(const char* function, void* to, size_t bytes, bool native) {
    if (!return_ring_)
        return_ring_ = new Return[kMaxReturns];
    const auto has_space = [&] {
        return return_head_ - returned_.load(std::memory_order_acquire) < kMaxReturns &&
               (return_bytes_ - returned_bytes_.load(std::memory_order_acquire) < kMaxReturnBytes ||
                has_returned(return_head_));
    };
    if (!has_space()) {
        flush();
        channel_.wait(function, &returned_, has_space);
    }
    Return& entry = return_ring_[return_head_ % kMaxReturns];
    entry.to = static_cast<char*>(to);
    entry.bytes = bytes;
    entry.native = native;
    entry.large = bytes >= kLargeBytes;
    entry.coming = false;
    entry.done.store(false, std::memory_order_relaxed);
    return_bytes_ += bytes;
    ++return_head_;
    published_returns_.store(return_head_, std::memory_order_release);  // pairs with on_reply; ahead of its record
}

// --- The sender

void Stream::send() {
    if (put_path_.load(std::memory_order_relaxed) == PutPath::kUnknown)  // release: pairs with is_native
        put_path_.store(channel_.is_native(pe_) ? PutPath::kNative : PutPath::kRecords, std::memory_order_release);
    send_bodies();
    for (;;) {
        uint64_t published = published_.load(std::memory_order_acquire);  // pairs with publish
        const uint64_t acked = acked_.load(std::memory_order_relaxed);
        if (is_holding()) {
            published = std::min(published, hold_at_.load(std::memory_order_relaxed));
            if (published == sent_)
                return;  // advance_returned comes back here
        }
        if (published == sent_) {
            if (acked == sent_ && !idle_.load(std::memory_order_relaxed))
                go_idle();
            if (published_.load(std::memory_order_acquire) == sent_)
                return;
            continue;
        }
        if (sent_ - acked >= kWindow || sending_head_ - sending_tail_ == kMaxSending)
            return;  // an acknowledgement, or the transport, comes back here
        uint64_t end = published;
        bool full = false;
        const uint32_t message_end_count =
            message_end_count_.load(std::memory_order_acquire);  // pairs with send_published
        if (message_end_count - message_ends_used_ > kMaxMessageEnds)
            message_ends_used_ = message_end_count - kMaxMessageEnds;
        while (message_ends_used_ != message_end_count && !full) {
            const uint64_t message_end =
                message_ends_[message_ends_used_ % kMaxMessageEnds].load(std::memory_order_relaxed);
            if (message_end > sent_ && message_end <= published) {
                end = message_end;
                full = true;
            } else if (message_end > published) {
                break;
            }
            ++message_ends_used_;
        }
        const bool in_flight = sent_ != acked;
        const bool flushed = flush_up_to_.load(std::memory_order_acquire) > sent_;  // pairs with flush
        if (in_flight && !full && !flushed)
            return;
        idle_.store(false, std::memory_order_relaxed);
        send_message(end);
        send_bodies();
    }
}

void Stream::send_message(uint64_t end) {
    Sending& sending = sending_[sending_head_++ % kMaxSending];
    sending = {this, end, false};
    const char* const from = ring_ + (sent_ & mask_);
    const size_t bytes = end - sent_;
    const uint64_t position = sent_;
    sent_ = end;
    channel_.send_message(pe_, RecordsHeader{.position = position, .stream_set = stream_set()}, from, bytes, false,
                          on_sent, &sending);
}

void Stream::send_bodies() {
    while (bodies_started_ != bodies_posted_.load(std::memory_order_acquire)) {  // pairs with put_large
        const Body body = bodies_[bodies_started_ % kMaxBodies];
        if (body.number != 0) {
            if (!is_complete(body.position) ||
                (is_holding() && body.number > hold_until_.load(std::memory_order_relaxed)))
                return;
            ++bodies_started_;
            send_native(body);
            continue;
        }
        if (body.position >= sent_)
            return;
        ++bodies_started_;
        channel_.send_message(pe_, LargeDataHeader{.position = body.position, .stream_set = stream_set()}, body.from,
                              body.bytes, true, on_body_sent, this);
    }
}

void Stream::on_sent(void* argument) {
    auto* sending = static_cast<Sending*>(argument);
    Stream& stream = *sending->stream;
    sending->done = true;
    uint64_t freed = 0;
    while (stream.sending_tail_ != stream.sending_head_) {
        const Sending& oldest = stream.sending_[stream.sending_tail_ % kMaxSending];
        if (!oldest.done)
            break;
        freed = oldest.end;
        ++stream.sending_tail_;
    }
    if (freed != 0)
        stream.freed_.store(freed, std::memory_order_release);  // pairs with make_space
    if (stream.published_.load(std::memory_order_acquire) != stream.sent_)
        stream.channel_.queue(&stream);
}

void Stream::on_body_sent(void* argument) {
    static_cast<Stream*>(argument)->bodies_sent_.fetch_add(1, std::memory_order_release);  // pairs with is_local
}

void Stream::send_native(const Body& body) {
    Return& entry = return_ring_[(body.number - 1) % kMaxReturns];
    char* const to = entry.to;
    entry.stream = this;
    if (body.from)
        channel_.put(pe_, body.at, body.from, body.bytes, on_native_done, &entry);
    else
        channel_.get(pe_, body.at, to, body.bytes, on_native_done, &entry);
}

void Stream::on_native_done(void* argument) {
    auto* entry = static_cast<Return*>(argument);
    Stream& stream = *entry->stream;
    entry->done.store(true, std::memory_order_relaxed);
    stream.advance_returned();
    on_body_sent(&stream);
}

// Nothing is in flight and nothing waits. The producer, when it does not see it, is seen.
void Stream::go_idle() {
    idle_.store(true, std::memory_order_relaxed);
    if (producer_.thread.load(std::memory_order_relaxed) != this_thread())
        os::heavy_fence();
}

bool Stream::on_ack(uint64_t position) {
    if (position > sent_)
        return false;
    if (position <= acked_.load(std::memory_order_relaxed))
        return true;
    acked_.store(position, std::memory_order_release);  // pairs with is_complete
    send();
    return true;
}

bool Stream::on_reply(uint64_t first, uint32_t count, const char* body, size_t bytes) {
    const uint64_t known = published_returns_.load(std::memory_order_acquire);  // pairs with expect_return
    uint64_t number = number_of(first);
    if (number < returned_.load(std::memory_order_relaxed) || number > known || known - number < count)
        return false;
    for (; count != 0; ++number) {
        if (number == known)
            return false;
        Return& entry = return_ring_[number % kMaxReturns];
        if (entry.native)
            continue;
        --count;
        const size_t padded = record::padded(entry.bytes);
        if (entry.large || entry.done.load(std::memory_order_relaxed) || padded > bytes)
            return false;
        bring(entry.to, body, entry.bytes);
        entry.done.store(true, std::memory_order_relaxed);
        body += padded;
        bytes -= padded;
    }
    advance_returned();
    return bytes == 0;
}

// The number in the ring of returns of the reply-th return that is not native. A result of published_returns_ or more
// means that there is none.
uint64_t Stream::number_of(uint64_t reply) const {
    if (put_path_.load(std::memory_order_relaxed) != PutPath::kNative)
        return reply;
    const uint64_t known = published_returns_.load(std::memory_order_acquire);  // pairs with expect_return
    uint64_t number = returned_.load(std::memory_order_relaxed);
    uint64_t counted = number - natives_returned_;
    if (reply < counted)
        return UINT64_MAX;
    for (; number != known; ++number) {
        const bool native = return_ring_[number % kMaxReturns].native;
        if (!native && counted == reply)
            break;
        counted += !native;
    }
    return number;
}

char* Stream::place_of_large_reply(uint64_t* number, size_t bytes) {
    const uint64_t known = published_returns_.load(std::memory_order_acquire);  // pairs with expect_return
    *number = number_of(*number);
    if (*number < returned_.load(std::memory_order_relaxed) || *number >= known)
        return nullptr;
    Return& entry = return_ring_[*number % kMaxReturns];
    if (!entry.large || entry.bytes != bytes || entry.coming)
        return nullptr;
    entry.coming = true;
    return entry.to;
}

void Stream::on_large_reply(uint64_t number) {
    return_ring_[number % kMaxReturns].done.store(true, std::memory_order_relaxed);
    advance_returned();
}

void Stream::advance_returned() {
    const uint64_t known = published_returns_.load(std::memory_order_acquire);  // pairs with expect_return
    const bool was_holding = is_holding();
    uint64_t returned = returned_.load(std::memory_order_relaxed),
             bytes = returned_bytes_.load(std::memory_order_relaxed);
    for (; returned != known; ++returned) {
        const Return& entry = return_ring_[returned % kMaxReturns];
        if (!entry.done.load(std::memory_order_relaxed))
            break;
        bytes += entry.bytes;
        natives_returned_ += entry.native;
    }
    returned_bytes_.store(bytes, std::memory_order_release);  // pairs with expect_return
    returned_.store(returned, std::memory_order_release);     // pairs with has_returned: the values are there
    if (was_holding && !is_holding())
        channel_.queue(this);  // what was held leaves, or the stream goes idle: nothing else may be in flight
}

}  // namespace heddle::fabric
