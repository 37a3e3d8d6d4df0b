// Stream: what one stream set sends to one PE, as records in a ring, and what comes back.
//
// All is counted in positions, bytes since the stream began:
//
//     acked <= freed <= sent <= published       published - freed <= size of the ring
//       |        |         |            '- written by the producer
//       |        |         '- handed to the transport
//       |        '- may be overwritten: the transport has let go of it    (acked <= freed is not needed, only usual)
//       '- complete at the target
//
// The producer is the thread that uses the stream set. The sender is whoever holds the channel's lock: any thread that
// polls. They share published, idle, freed and acked, and never wait for each other but when the ring is full.
//
// When records leave: at once when nothing is in flight to that PE, so that a lone message waits for nobody; otherwise
// when a message is full, when what is in flight has been acknowledged, or when somebody waits (`flush`). So small
// operations gather while the network is busy, and only then.
//
// No record is left behind: who finds that nothing is in flight and nothing waits sets idle, and then looks at
// published again; who publishes looks at idle behind it. Between its two steps the former makes all threads of the
// process pass a full fence (os/asymmetric_fence.h), so the latter, which runs for every operation, needs none.
//
// Gets and fetching atomics are records too; where their values go is in a ring of returns, in the same order.
//
// Native puts and gets (docs/decisions/0013) go past the ring of records, each when all records before it are complete.
// They are returns like any other, so that what waits for returns covers them; the target, which does not see them,
// leaves them out when it counts its replies. A fence behind a native put holds back what follows until it is complete.
#pragma once

#include "fabric/protocol/record.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace heddle::fabric {

class RailScheduler;
class Channel;

constexpr size_t kLargeBytes = 32 * 1024;    // from here on data is not copied into the ring
constexpr size_t kMessageBytes = 60 * 1024;  // a message is full when a record has crossed this
constexpr size_t kMinRing = 16 * 1024;       // bytes; grows when it was full
constexpr size_t kMaxRing = 256 * 1024;
constexpr uint64_t kWindow = 4 * 1024 * 1024;  // bytes sent and not acknowledged
constexpr uint32_t kMaxReturns = 4096;         // outstanding
constexpr size_t kMaxReturnBytes = 1024 * 1024;
constexpr uint32_t kMaxStreamSets = 65536;  // of a PE

// Who sends: one thread at a time, for a while or for ever.
struct Producer {
    uint32_t stream_set = 0;                   // its number in this PE
    std::atomic<const void*> thread{nullptr};  // this_thread() of the only one that it can be; null: any
};
const void* this_thread();

class alignas(128) Stream {
  public:
    Stream(Channel& channel, const Producer& producer, int pe);
    ~Stream();
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    // --- The producer: one thread at a time. function: for the message that shows where a PE waits.

    // The place for a record of at most `bytes`, which publish gives to the sender.
    char* reserve(const char* function, size_t bytes) {
        const uint64_t head = position();
        if (__builtin_expect(head + bytes > stop_, 0))
            make_space(function, bytes);
        return ring_ + (head & mask_);
    }
    void publish(const char* behind) {
        const uint64_t head = position();
        const uint64_t end = head + static_cast<uint64_t>(behind - (ring_ + (head & mask_)));
        if (__builtin_expect(publish_to_idle(end) || end >= full_at_, 0))
            send_published();
    }
    // The most frequent record, when nothing else is to be done: about 12 instructions. False, and nothing is done,
    // when room must be made or the message is full.
    [[gnu::always_inline]] bool put_word_at_once(Address to, uint64_t bits) {
        const uint64_t head = position(), end = head + 2 * record::kWord;
        if (__builtin_expect(end >= simple_up_to_, 0))
            return false;
        record::put_word(ring_ + (head & mask_), to, bits, record::kWord);
        if (__builtin_expect(publish_to_idle(end), 0))
            send_published();
        return true;
    }
    // A kLarge record, and its body, which stays as it is until is_local().
    void put_large(const char* function, Address to, const char* from, size_t bytes);
    // A record whose reply, `bytes` of it, goes to `to`; room and publish come behind.
    void expect_return(const char* function, void* to, size_t bytes);

    // Whether this PE's memory and the other one's can be reached natively; asked first, it may wait for the endpoint.
    bool is_native(const char* function) {
        const PutPath put_path = put_path_.load(std::memory_order_acquire);  // pairs with Stream::send
        return put_path == PutPath::kNative || (put_path == PutPath::kUnknown && find_put_path(function));
    }
    // Where is_native; the source stays as it is until is_local().
    void put_native(const char* function, Address to, const char* from, size_t bytes);
    void get_native(const char* function, char* to, Address from, size_t bytes);

    // What follows is applied when all before is complete: a kOrder record, where large data could be passed.
    void order(const char* function) {
        if (last_large_ > acked_.load(std::memory_order_relaxed))
            publish(record::order(reserve(function, record::kMaxShort)));
        if (__builtin_expect(!has_returned(last_native_), 0))
            hold(function);
    }
    // All native puts are complete.
    void wait_for_natives(const char* function);
    // What is published now does not soon wait for the ring. Acquire: pairs with Stream::on_sent.
    bool has_space() const { return position() - freed_.load(std::memory_order_acquire) <= (mask_ + 1) / 2; }
    // The producer's own remark.
    struct Remark {
        void* about = nullptr;
        void* what = nullptr;
        uint32_t generation = 0;
    } remark;

    uint64_t position() const { return published_.load(std::memory_order_relaxed); }
    uint64_t returns() const { return return_head_; }

    // --- Any thread.

    uint64_t acked() const { return acked_.load(std::memory_order_relaxed); }
    // Acquire: pairs with Stream::publish_to_idle.
    uint64_t published() const { return published_.load(std::memory_order_acquire); }
    // Acquire: pairs with Stream::take_return.
    uint64_t published_returns() const { return published_returns_.load(std::memory_order_acquire); }
    // True when everything before `position` is complete at the target. Acquire: pairs with Stream::on_ack.
    bool is_complete(uint64_t position) const { return acked_.load(std::memory_order_acquire) >= position; }
    // Acquire: pairs with Stream::advance_returned.
    bool has_returned(uint64_t number) const { return returned_.load(std::memory_order_acquire) >= number; }
    bool is_quiet() const { return is_complete(published()) && has_returned(published_returns()); }
    // The large bodies posted so far may be overwritten, and the data of native gets has arrived. Acquire: pairs with
    // Stream::on_body_sent and Stream::post_body.
    bool is_local() const {
        return bodies_sent_.load(std::memory_order_acquire) == bodies_posted_.load(std::memory_order_acquire);
    }
    // What has been published leaves without waiting for more, when the channel is next polled: the caller is about to
    // wait.
    void flush();

    int pe() const { return pe_; }
    uint32_t stream_set() const { return producer_.stream_set; }
    Channel& channel() const { return channel_; }

    // --- The sender: under the channel's lock.

    // Hands to the transport what is to leave now.
    void send();
    // False when the position or the numbers cannot be: the peer is broken.
    bool on_ack(uint64_t position);
    bool on_reply(uint64_t first, uint32_t count, const char* body, size_t bytes);
    // Where the large reply goes, said once, or null; on_large_reply of what *number becomes when it is there.
    char* place_of_large_reply(uint64_t* number, size_t bytes);
    void on_large_reply(uint64_t number);

    RailScheduler* rails = nullptr;  // where the network has several
    // The stream set's list of those that it has used, and the channel's of those to send.
    Stream* next_of_stream_set = nullptr;
    std::atomic<Stream*> next_to_send{nullptr};
    std::atomic<bool> queued{false};

  private:
    enum class PutPath : uint8_t { kUnknown, kRecords, kNative };
    struct Return {
        union {
            char* to;
            Stream* stream;  // of a native one that is under way
        };
        size_t bytes;
        bool native;  // not a reply's
        bool large;
        bool coming;  // a large reply is on its way to it
        std::atomic<bool> done;
    };
    struct Sending {  // a message that the transport has
        Stream* stream;
        uint64_t end;
        bool done;
    };
    struct Body {           // a large one, to be sent behind its record; or a native put or get
        uint64_t position;  // of the record; native: behind those that must be complete
        const char* from;   // null: a get
        size_t bytes;
        Address at = {};
        uint64_t number = 0;  // native: of its return
    };
    static constexpr uint32_t kMaxSending = 16, kMaxMessageEnds = 16, kMaxBodies = 64;

    // Publishes; true when the sender, idle, is to be told.
    bool publish_to_idle(uint64_t end) {
        published_.store(end, std::memory_order_release);     // pairs with Stream::send and Stream::published
        std::atomic_signal_fence(std::memory_order_seq_cst);  // with the fence of go_idle: the light side
        return idle_.load(std::memory_order_relaxed);
    }
    void make_space(const char* function, size_t bytes);
    void grow(size_t bytes);
    void send_published();
    bool find_put_path(const char* function);
    void take_return(const char* function, void* to, size_t bytes, bool native);
    void post_body(const char* function, Body body);
    void post_native(const char* function, Body body, char* to);
    void hold(const char* function);
    void send_message(uint64_t end);
    void send_bodies();
    void send_native(const Body& body);
    // Acquire: pairs with Stream::hold.
    bool is_holding() const { return !has_returned(hold_until_.load(std::memory_order_acquire)); }
    void go_idle();
    void advance_returned();
    uint64_t number_of(uint64_t reply) const;
    static void on_sent(void* sending);
    static void on_body_sent(void* stream);
    static void on_native_done(void* entry);

    // The producer's.
    char* ring_ = nullptr;
    uint64_t mask_ = 0;
    uint64_t stop_ = 0;          // room up to here, as last seen
    uint64_t full_at_ = 0;       // a message is full here
    uint64_t simple_up_to_ = 0;  // what ends before here needs neither room nor a message's end
    uint64_t last_large_ = 0;    // behind its record
    uint64_t last_native_ = 0;   // number of a put's return
    // Both sides'.
    std::atomic<uint64_t> published_{0};
    std::atomic<bool> idle_{true};
    Channel& channel_;
    const Producer& producer_;
    const int pe_;
    std::atomic<uint64_t> flush_up_to_{0};                      // all before it leaves
    std::atomic<uint64_t> message_ends_[kMaxMessageEnds] = {};  // where full messages end
    std::atomic<uint32_t> message_end_count_{0};
    // The producer's, for returns.
    Return* return_ring_ = nullptr;
    uint64_t return_head_ = 0;
    uint64_t return_bytes_ = 0;
    std::atomic<uint64_t> published_returns_{0};
    Body* bodies_ = nullptr;
    std::atomic<uint64_t> bodies_posted_{0};
    std::atomic<PutPath> put_path_;
    // Records from hold_at_ on, and native ones whose numbers are higher, wait until hold_until_ has returned.
    std::atomic<uint64_t> hold_at_{0};
    std::atomic<uint64_t> hold_until_{0};

    // The sender's, and read by all.
    alignas(128) std::atomic<uint64_t> acked_{0};
    std::atomic<uint64_t> freed_{0};
    std::atomic<uint64_t> returned_{0};
    std::atomic<uint64_t> returned_bytes_{0};
    std::atomic<uint64_t> bodies_sent_{0};
    // The sender's.
    uint64_t sent_ = 0;
    uint32_t message_ends_used_ = 0;
    uint64_t bodies_started_ = 0;
    uint64_t natives_returned_ = 0;  // of those before returned_
    Sending sending_[kMaxSending] = {};
    uint32_t sending_head_ = 0, sending_tail_ = 0;
};

}  // namespace heddle::fabric
