// Stream: what one stream set sends to one PE over one channel, in order, and what comes back. It joins four parts,
// each with its own state and invariants:
//
//     SendRing     the records, and when they leave as messages
//     BodyQueue    large data and native transfers, which leave beside the records
//     ReturnRing   where the values of gets and fetching atomics go
//     NativeFence  what waits behind native puts
//
// A stream waits for what its parts lack (room in the ring, a free return), and hands what leaves to its channel.
//
// Native puts and gets (docs/decisions/0013) go past the ring of records, each when all records before it are complete.
// A fence behind a native put holds back what follows until it is complete.
//
// Threads: the producer, the thread that uses the stream set, posts. The sender is the holder of the channel's lock:
// any thread that polls. They never wait for each other, except for the producer when a part is full.
//
// Cost of an 8-byte put: about 12 instructions here when nothing else is to be done.
#pragma once

#include "fabric/endpoint/body_queue.h"
#include "fabric/endpoint/intrusive_list.h"
#include "fabric/endpoint/native_fence.h"
#include "fabric/endpoint/return_ring.h"
#include "fabric/endpoint/send_ring.h"
#include "fabric/endpoint/stream_group.h"
#include "fabric/protocol/record.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace heddle::fabric {

class RailScheduler;
class Channel;
class GatheredMessage;

constexpr uint32_t kMaxStreamSets = 65536;  // of a PE

class alignas(128) Stream {
    SendRing ring_;  // first: inlined code knows the stream by its head (heddle_stream)

  public:
    // Of a group, which is not full.
    Stream(Channel& channel, Producer& producer, int pe, StreamGroup& group);
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    // The stream with that head, which inlined code puts records into; null with null.
    static Stream* with(heddle_stream* head) { return reinterpret_cast<Stream*>(head); }

    // --- The producer: one thread at a time. function: for the message that shows where a PE waits.

    // The place for a record of at most `bytes`, which publish gives to the sender.
    char* reserve(const char* function, size_t bytes) {
        if (__builtin_expect(!ring_.has_room(bytes), 0))
            make_room(function, bytes);
        return ring_.place();
    }
    void publish(const char* behind) {
        if (__builtin_expect(ring_.publish(ring_.position_of(behind)), 0))
            send_published();
    }
    // Ahead of several records that are to leave together: a lap does not end between them, where that can be helped.
    void begin_together(size_t bytes) {
        if (!ring_.has_room(bytes))
            ring_.rewind();
    }
    // A record ahead of one that the caller publishes next, which calls the sender of an idle stream: both leave in one
    // message, unless this one fills it. The sender may come by itself meanwhile: the stream is active from here on.
    void publish_ahead(const char* behind) {
        const uint64_t end = ring_.position_of(behind);
        const bool is_idle = ring_.publish_simple(end);
        if (ring_.is_full(end))
            send_published();
        else if (is_idle)
            mark_active();
    }
    // Something was published to an idle stream, or fills a message.
    void send_published();
    // The most frequent record, when nothing else is to be done. False, and nothing is done, when room must be made or
    // the message is full.
    [[gnu::always_inline]] bool put_word_at_once(Address to, uint64_t bits) {
        const uint64_t end = ring_.position() + 2 * record::kWord;
        if (__builtin_expect(!ring_.is_simple(end), 0))
            return false;
        record::put_word(ring_.place(), to, bits, record::kWord);
        if (__builtin_expect(ring_.publish_simple(end), 0))
            send_published();
        return true;
    }
    // A kLarge record, and its body, which stays as it is until is_local().
    void put_large(const char* function, Address to, const char* from, size_t bytes);
    // A value of `bytes` comes back for the record that is published next, and goes to `to`.
    void expect_return(const char* function, void* to, size_t bytes);
    // expect_return of less than kLargeBytes, where it waits for nothing. False, and nothing is done, where it would.
    bool expect_return_at_once(void* to, size_t bytes) {
        if (!returns_.has_space())
            return false;
        returns_.take(static_cast<char*>(to), bytes);
        return true;
    }

    // Whether this PE's memory and the other one's can be reached natively. The first call may wait for the endpoint.
    bool is_native(const char* function) {
        const PutPath put_path = put_path_.load(std::memory_order_acquire);  // pairs with Stream::send_ready
        return put_path == PutPath::kNative || (put_path == PutPath::kUnknown && find_put_path(function));
    }
    // Where is_native; the source stays as it is until is_local().
    void put_native(const char* function, Address to, const char* from, size_t bytes);
    void get_native(const char* function, char* to, Address from, size_t bytes);

    // What follows is applied when all before is complete: a kOrder record, where large data could be passed.
    void order(const char* function) {
        if (last_large_ > acked())
            publish(record::order(reserve(function, record::kMaxShort)));
        if (__builtin_expect(!fence_.is_clear(), 0))
            hold(function);
    }
    // Waits until all native puts are complete.
    void wait_for_natives(const char* function);
    // What is published now does not soon wait for the ring.
    bool has_space() const { return ring_.has_space(); }
    // Gives the ring's memory back, and that of returns; false while the transport may read it. The next record borrows
    // other memory.
    bool give_back();
    Stream* next_with_ring = nullptr;  // RingQuota's: another one of the stream set

    uint64_t position() const { return ring_.position(); }
    uint64_t returns() const { return returns_.head(); }
    // The transport has let go of all that was published.
    bool has_left() const { return ring_.is_free() && is_local(); }

    // --- Any thread.

    uint64_t acked() const { return ring_.acked(); }
    uint64_t published() const { return ring_.published(); }
    uint64_t published_returns() const { return returns_.published(); }
    // All before the position is complete at the target.
    bool is_complete(uint64_t position) const { return ring_.is_complete(position); }
    // All returns before that number are done.
    bool has_returned(uint64_t number) const { return returns_.has_returned(number); }
    bool is_quiet() const { return is_complete(published()) && has_returned(published_returns()); }
    // The large bodies posted so far may be overwritten, and the data of native gets has arrived.
    bool is_local() const { return bodies_.is_sent(); }
    // What has been published leaves without waiting for more, when the channel is next polled: the caller is about to
    // wait.
    void flush();
    bool is_flushed() const { return ring_.is_flushed(producer_.may_batch()); }

    // What inlined code reads and writes.
    heddle_stream* head() const { return ring_.head(); }
    // True for the stream of a thread, which alone can be its producer.
    bool is_of(const void* thread) const { return producer_.thread.load(std::memory_order_relaxed) == thread; }
    int pe() const { return pe_; }
    uint32_t stream_set() const { return producer_.stream_set; }
    Channel& channel() const { return channel_; }

    // --- The sender: under the channel's lock.

    // Hands to the transport what is to leave now.
    void send();
    // The short message that waits in the peer's list (Stream::gathering) leaves, if there still is one: into the
    // gathered message where that is not null, otherwise by itself.
    void send_short(GatheredMessage* into);
    // An ack, or replies, that have come. False when the position or the numbers cannot be: the peer is broken.
    bool on_ack(uint64_t position);
    bool on_reply(uint64_t first, uint32_t count, const char* body, size_t bytes);
    // Where a large reply goes, said once, or null. *number: the reply's, and then the return's, for on_large_reply.
    char* place_of_large_reply(uint64_t* number, size_t bytes) { return returns_.place_of_large(number, bytes); }
    // The data of a large reply is in place.
    void on_large_reply(uint64_t number);

    RailScheduler* rails = nullptr;  // null: the network has one rail
    // In the channel's list of streams that have gone idle, and are not known to be (Channel::finish_idle).
    ListLink<Stream> going_idle;
    // In the peer's list of streams with a short message (fabric/endpoint/peer.h).
    ListLink<Stream> gathering;
    // In the channel's stack of streams to send (Channel::queue).
    std::atomic<Stream*> next_to_send{nullptr};
    std::atomic<bool> queued{false};

  private:
    enum class PutPath : uint8_t { kUnknown, kRecords, kNative };

    void make_room(const char* function, size_t bytes);
    void send_ready();
    bool find_put_path(const char* function);
    void wait_for_return(const char* function);
    void wait_for_body(const char* function);
    void post_native(const char* function, Body body);
    void hold(const char* function);
    uint64_t limit() const;
    bool holds() const;
    void send_message(const SendRing::Message& message);
    void gather();
    void begin_busy();
    void end_busy();
    void send_bodies();
    void send_native(const Body& body);
    void resume(bool was_holding);
    void mark_active() { group_.mark(index_, *producer_.n_active); }
    void rest();
    static void on_sent(void* sending);
    static void on_body_sent(void* stream);
    static void on_native_done(void* entry);

    StreamGroup& group_;
    const uint32_t index_;  // in the group
    ReturnRing returns_;
    BodyQueue bodies_;
    NativeFence fence_{returns_};
    Channel& channel_;
    Producer& producer_;
    const int pe_;
    bool is_busy_ = false;      // the sender's: counted in Peer::n_busy
    bool gathers_ = false;      // the sender's: counted in Producer::n_gathering
    uint64_t gathered_at_ = 0;  // the sender's: what had been published when the stream was put into the peer's list
    uint64_t last_large_ = 0;   // the producer's: the position behind the last kLarge record
    std::atomic<PutPath> put_path_;
};

// A table of streams as inlined code reads it.
inline heddle_stream* const* heads_of(const std::atomic<Stream*>* streams) {
    static_assert(sizeof *streams == sizeof(heddle_stream*));
    return reinterpret_cast<heddle_stream* const*>(streams);
}

}  // namespace heddle::fabric
