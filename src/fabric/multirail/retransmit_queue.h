// Retransmit queue: the messages of one channel to one PE, numbered, and kept until that PE has acknowledged them. When
// their rail is lost they are sent over another one, and no message is taken twice. Used only with
// HEDDLE_RAIL_LOSS=continue; that the transport has sent a message counts for nothing there.
//
// A receiver takes messages in the order of their numbers. When a rail is lost, all kept messages are sent again over
// another rail, the oldest first. A message that still arrives over the lost rail has been taken already or will come
// again, so the receiver takes only the next number.
//
//     acked <= last       kept messages are numbered without a gap up to last; all behind acked are kept
//
// Threads: under the channel's lock.
#pragma once

#include "base/invariant.h"
#include "fabric/protocol/message.h"
#include "fabric/transport/transport.h"

#include <cstddef>
#include <cstdint>
#include <deque>

namespace heddle::fabric {

// A message that the other PE has not acknowledged.
struct Unacked {
    Header header;
    const char* body;  // stays as it is until `done`
    size_t bytes;
    Done done;
    void* argument;
    bool sent = false;  // the transport has let go of the message
    class RetransmitQueue* queue = nullptr;
};

class RetransmitQueue {
  public:
    explicit RetransmitQueue(int pe) : pe_(pe) {}
    // Frees the bodies that only their messages refer to.
    ~RetransmitQueue() {
        for (const Unacked& message : unacked_)
            if (message.header.kind == MessageKind::kReply || message.header.kind == MessageKind::kConnect ||
                message.header.kind == MessageKind::kGathered)
                message.done(message.argument);
    }
    RetransmitQueue(const RetransmitQueue&) = delete;
    RetransmitQueue& operator=(const RetransmitQueue&) = delete;

    // Numbers the message, and acknowledges in it what has come. The result stays where it is until it is acknowledged.
    Unacked& add(const Unacked& message) {
        Unacked& unacked = unacked_.emplace_back(message);
        unacked.queue = this;
        unacked.header.sequence = ++last_;
        unacked.header.received = received_;
        check_numbers();
        return unacked;
    }
    // The transport's Done for an Unacked.
    static void on_sent(void* argument) {
        auto* const message = static_cast<Unacked*>(argument);
        HEDDLE_INVARIANT(!message->sent);  // the transport lets go of a message once
        message->sent = true;
        message->queue->release();
    }
    // The transport is not called any more, and lets go of nothing. What it holds is what the other PE may have taken
    // already: a message that it has not taken stays as it is, for it is not acknowledged.
    void on_rail_lost() {
        for (Unacked& message : unacked_) message.sent = true;
        release();
    }
    // Whether that message of the PE is the next one, which is taken then. False for a message that has come before, or
    // will come again.
    bool is_next(const Header& header) {
        if (header.sequence != received_ + 1)
            return false;
        ++received_;
        HEDDLE_INVARIANT(received_ == header.sequence);  // no message is taken twice, and none is left out
        return true;
    }
    // The PE has all messages up to that number; false when fewer were sent.
    bool on_ack(uint64_t sequence) {
        if (sequence > last_)
            return false;
        acked_ = sequence > acked_ ? sequence : acked_;
        release();
        return true;
    }

    int pe() const { return pe_; }
    const std::deque<Unacked>& unacked() const { return unacked_; }

  private:
    void release() {
        while (!unacked_.empty() && unacked_.front().sent && unacked_.front().header.sequence <= acked_) {
            const Unacked message = unacked_.front();
            unacked_.pop_front();
            check_numbers();
            if (message.done)
                message.done(message.argument);  // may send, or come here again
        }
    }
    void check_numbers() const {
        HEDDLE_INVARIANT(acked_ <= last_);
        // A deque without a gap: the oldest kept message is at most the first that is not acknowledged.
        HEDDLE_INVARIANT(unacked_.empty() ? acked_ == last_ : unacked_.back().header.sequence == last_);
        HEDDLE_INVARIANT(unacked_.empty() || unacked_.front().header.sequence == last_ + 1 - unacked_.size());
        HEDDLE_INVARIANT(unacked_.empty() || unacked_.front().header.sequence <= acked_ + 1);
    }

    const int pe_;
    uint64_t last_ = 0;            // the number of the last message that was added
    uint64_t acked_ = 0;           // the other PE has the messages up to this number
    uint64_t received_ = 0;        // this PE has those of the other one up to this number
    std::deque<Unacked> unacked_;  // the oldest first
};

}  // namespace heddle::fabric
