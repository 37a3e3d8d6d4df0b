// SendRing: the records of a stream that have not all arrived, in a ring, and which of them leave as the next message.
//
// All is counted in positions, bytes since the stream began, of whole words:
//
//     acked <= sent <= published      freed <= sent      published - freed <= size of the memory
//       |       |        |              '- may be overwritten: the transport has let go of it (usually acked <= freed)
//       |       |        '- written by the producer
//       |       '- handed to the transport
//       '- complete at the target
//
// The producer is the thread that uses the stream set. The sender is the holder of the channel's lock: any thread that
// polls. They share published, idle, freed, acked and the lap.
//
// Records lie in memory in laps. A lap begins at the memory's beginning, at any position, and ends where the next
// record does not fit any more. A record is in one piece; what is left at the memory's end is not used. The first
// record of a lap overwrites nothing that the transport may still read. Of the laps before, only the last is then used:
//
//     memory   |== this lap ==>          |== the lap before ==|       |
//                            position  freed                  end
//
// A message ends with its lap. A producer that has called the sender, and finds nothing in use, begins a lap
// (`rewind`). So what gathers behind a lone record has the whole memory ahead of it. Memory is lent (RingQuota). While
// nothing of it is in use the producer may give it back, or take other memory, where a lap begins. The sender reads
// memory of published records alone (tests/model/lap.pml).
//
// An idle stream sends its records at once, so that a lone record waits for nobody. It is idle until a record follows
// while a message is in flight. That record gathers with those behind it. They leave when a message is full, when all
// in flight is acknowledged, or when a thread waits (`flush`). So small operations gather while the network is busy,
// and only then. In a session (Producer::batches) the records of an idle stream gather, too, until a message is full or
// flushed. No message leaves while kWindow bytes are in flight, nor while the transport has kMaxSending messages.
//
// No record is left behind. A sender that finds nothing in flight and nothing to send sets idle, and then reads
// published again. The producer publishes, and then reads idle. Between its two steps the sender makes all threads of
// the process pass a full fence (os/asymmetric_fence.h). The streams that go idle in one turn of a channel share it.
// Therefore the producer, whose steps are in every operation, needs none. A stream whose records are complete one by
// one stays idle, and costs no such fence.
//
// Full messages end where the producer says (end_message), in a ring of kMaxMessageEnds positions. A sender that is
// further behind loses the oldest, and its message goes on to the next end that is left. The message is longer, and
// whole all the same, since every end is that of a record.
#pragma once

#include "base/invariant.h"
#include "fabric/endpoint/expected_wait.h"
#include "fabric/endpoint/ring_quota.h"
#include "fabric/protocol/record.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace heddle::fabric {

class Stream;

// The thread that sends: one at a time, for a while or for ever.
struct Producer {
    uint32_t stream_set = 0;  // its number in this PE
    // this_thread() of the only one that it can be; null: any; ended_thread(): that one has ended.
    std::atomic<const void*> thread{nullptr};
    std::atomic<uint32_t>* n_active = nullptr;  // the active streams of all stream sets of its context
    // Of its context: whether a session is open whose records may gather; null: never.
    std::atomic<const std::atomic<bool>*> batches{nullptr};
    RingQuota quota;  // of the stream set's rings
    // Its streams whose records gather: the producer does not call the sender for them. A hint for StreamSet::flush.
    std::atomic<uint32_t> n_gathering{0};
    ExpectedWait expected_wait;

    // Any thread, of a stream set that nobody uses, too. Acquire: pairs with Network::make_stream_set. Relaxed:
    // Stream::holds decides.
    bool may_batch() const {
        const std::atomic<bool>* const its = batches.load(std::memory_order_acquire);
        return its && its->load(std::memory_order_relaxed);
    }
};
// A value that no other thread of the process has while this one lives, and one that no thread has.
const void* this_thread();
const void* ended_thread();

constexpr size_t kMessageBytes = 60 * 1024;    // a message is full when a record has crossed this
constexpr uint64_t kWindow = 4 * 1024 * 1024;  // bytes sent and not acknowledged

class alignas(128) SendRing {
    // What inlined code puts records by. base: of the lap; the sender reads it, too. idle: written by the sender.
    mutable heddle_stream head_ = {
        .base = 0, .published = 0, .simple_end = 0, .idle = 1, .request = HEDDLE_NO_REQUEST, .claimed = nullptr};

  public:
    static constexpr uint32_t kMaxSending = 16, kMaxMessageEnds = 16;

    // A message that the transport has.
    struct Sending {
        Stream* stream;
        uint64_t end : 63;  // the position behind it
        uint64_t done : 1;  // the transport has let go of it
    };
    struct Message {
        uint64_t position;
        const char* records;
        size_t bytes;
        Sending* sending;
    };

    // full_bytes: of a full message. The ring has no memory.
    explicit SendRing(size_t full_bytes) : full_at_(full_bytes), full_bytes_(full_bytes) {}
    SendRing(const SendRing&) = delete;
    SendRing& operator=(const SendRing&) = delete;

    // --- The producer: one thread at a time.

    uint64_t position() const { return published_ref().load(std::memory_order_relaxed); }
    // Whether a record of so many bytes fits behind the last one, as far as was seen last.
    bool has_room(size_t bytes) const { return position() + bytes <= room_end_; }
    // The place of the next record.
    char* place() const { return reinterpret_cast<char*>(head_.base + position()); }
    // The position of a place behind the next record's.
    uint64_t position_of(const char* behind) const { return position() + static_cast<uint64_t>(behind - place()); }
    // Gives the records before `end` to the sender: true when the sender must be called, because it is idle or because
    // a message is full.
    bool publish(uint64_t end) { return publish_to_idle(end) || is_full(end); }
    // Whether a record that ends there fills a message.
    bool is_full(uint64_t end) const { return end >= full_at_; }
    // Whether a record that ends there needs no room to be made and fills no message; publish_simple is enough for it.
    bool is_simple(uint64_t end) const { return end < head_.simple_end; }
    bool publish_simple(uint64_t end) { return publish_to_idle(end); }
    // What has been published ends a message when it is a full one: true then.
    bool end_message();

    // Looks again whether a record fits; begins a lap where it does not fit into this one, and would into the next.
    bool find_room(size_t bytes);
    // Begins a lap where nothing of the memory is in use.
    void rewind() {
        if (position() != lap_.load(std::memory_order_relaxed) && is_free())
            begin_lap(position());
    }
    // Nothing of the memory is in use. Acquire: pairs with SendRing::on_sent.
    bool is_free() const { return freed_.load(std::memory_order_acquire) == position(); }
    // Where is_free: the records from here on go into that memory, or there is none (null). Returns the memory so far.
    char* set_memory(char* memory, size_t bytes);
    // Little enough is in use that the next records do not wait for room. Acquire: pairs with SendRing::on_sent.
    bool has_space() const {
        return position() - freed_.load(std::memory_order_acquire) <= std::max(size_, RingQuota::kEasyRing) / 2;
    }
    size_t size() const { return size_; }
    // The size of the memory that it had last.
    size_t last_size() const { return last_size_; }

    // --- Any thread.

    heddle_stream* head() const { return &head_; }
    // The position behind the last record that was published. Acquire: pairs with
    // SendRing::publish_to_idle.
    uint64_t published() const { return published_ref().load(std::memory_order_acquire); }
    // What has been published leaves without waiting for more, when the channel is next polled. A thread that has read
    // less than another one has flushed changes nothing (tests/model/flush.pml).
    void flush() {
        const uint64_t end = published();
        uint64_t before = flush_up_to_.load(std::memory_order_relaxed);
        // Release: pairs with SendRing::take_message.
        while (before < end &&
               !flush_up_to_.compare_exchange_weak(before, end, std::memory_order_release, std::memory_order_relaxed)) {
        }
    }
    // All that was published before this call by this thread leaves without waiting for more. may_hold: in a session
    // even the records of an idle stream wait.
    bool is_flushed(bool may_hold) const {
        return (!may_hold && is_idle()) ||
               flush_up_to_.load(std::memory_order_relaxed) >= published_ref().load(std::memory_order_relaxed);
    }
    uint64_t acked() const { return acked_.load(std::memory_order_relaxed); }
    // All before the position is complete at the target. Acquire: pairs with SendRing::on_ack.
    bool is_complete(uint64_t position) const { return acked_.load(std::memory_order_acquire) >= position; }
    // Where a wait for room looks.
    const void* freed_line() const { return &freed_; }

    // --- The sender: under the channel's lock.

    uint64_t sent() const { return sent_; }
    // The next message of records before `limit`; false: nothing is to leave now. Counts as sent from here on. One that
    // is not full and has fewer than short_bytes stays where it is: its `sending` is null. holds: records that fill no
    // message wait for a flush even where nothing is in flight.
    bool take_message(uint64_t limit, Stream* stream, Message* message, size_t short_bytes = 0, bool holds = false);
    // Pressure begins: the producer calls the sender no more for every record. Something of the stream is in flight, or
    // its next message waits, for others or for a flush.
    void begin_pressure() { idle_ref().store(0, std::memory_order_relaxed); }
    // The transport has let go of a message.
    void on_sent(Sending* sending);
    // The target is complete up to there: false when so much was never sent.
    bool on_ack(uint64_t position);
    // Nothing was sent that is not acknowledged.
    bool is_drained() const { return acked_.load(std::memory_order_relaxed) == sent_; }
    // The producer calls the sender for every record.
    bool is_idle() const { return idle_ref().load(std::memory_order_relaxed) != 0; }
    // Where is_drained: from here on the producer calls the sender. The caller looks at published behind it; where true
    // is returned, behind a heavy fence (os/asymmetric_fence.h) that it makes.
    bool go_idle(const Producer& producer);

  private:
    bool publish_to_idle(uint64_t end) {
        // Whole words, and no more than the room that was made.
        HEDDLE_INVARIANT_MSG(end % record::kWord == 0 && end >= position() && end <= room_end_,
                             "end %#zx, position %#zx, room up to %#zx", size_t{end}, size_t{position()},
                             size_t{room_end_});
        published_ref().store(end, std::memory_order_release);  // pairs with SendRing::published
        std::atomic_signal_fence(std::memory_order_seq_cst);    // pairs with Channel::finish_idle: the light side
        return idle_ref().load(std::memory_order_relaxed) != 0;
    }
    std::atomic_ref<uint64_t> published_ref() const { return std::atomic_ref<uint64_t>(head_.published); }
    std::atomic_ref<uint8_t> idle_ref() const { return std::atomic_ref<uint8_t>(head_.idle); }
    void set_simple_end() { head_.simple_end = std::min(room_end_, full_at_); }
    void set_room(uint64_t freed);
    void begin_lap(uint64_t freed);
    bool find_message_end(uint64_t limit, uint64_t* end);
    void check_positions() const;

    // The producer's.
    uint64_t room_end_ = 0;  // records may be written up to here: as far as the transport had let go when last seen
    uint64_t full_at_ = 0;   // a message is full here
    const size_t full_bytes_;
    char* memory_ = nullptr;  // null: there is none
    size_t size_ = 0;
    uint64_t lap_end_ = 0;
    uint64_t lap_before_ = 0;  // where the lap before began
    size_t last_size_ = 0;
    // Written by the producer, read by the sender.
    std::atomic<uint64_t> lap_{0};  // where the lap begins
    std::atomic<uint64_t> flush_up_to_{0};
    std::unique_ptr<std::atomic<uint64_t>[]> message_ends_;  // by their number; null: there was none
    std::atomic<uint32_t> message_end_count_{0};
    // Written by the sender, read by all.
    alignas(128) std::atomic<uint64_t> acked_{0};
    std::atomic<uint64_t> freed_{0};
    // The sender's.
    uint64_t sent_ = 0;
    uintptr_t sent_base_ = 0;  // as base_, for the lap that sent_ is in
    uint32_t message_ends_used_ = 0;
    uint32_t sending_head_ = 0, sending_tail_ = 0;
    Sending sending_[kMaxSending] = {};  // by their number, from tail to head
};

}  // namespace heddle::fabric
