// Retransmit queue: the messages of one channel to one PE, numbered, and kept until that PE has acknowledged them. When
// their rail is lost they are sent over another one, and no message is taken twice. Used only with
// HEDDLE_RAIL_LOSS=continue; that the transport has sent a message counts for nothing there.
//
// A receiver takes messages in the order of their numbers. When a rail is lost, all kept messages are sent again over
// another rail, the oldest first. A message that still arrives over the lost rail has been taken already or will come
// again, so the receiver takes only the next number.
//
//     acked <= last       the kept messages are numbered one after the other, up to last; those behind acked are all kept
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

struct Unacked {
    Header header;
    const char* body;  // stays as it is until done
    size_t bytes;
    Done done;
    void* argument;
    bool sent = false;  // the transport has let go of it
    class RetransmitQueue* queue = nullptr;
};

class RetransmitQueue {
  public:
    explicit RetransmitQueue(int pe) : pe_(pe) {}
    // Bodies that nobody else has go with it.
    ~RetransmitQueue() {
        for (const Unacked& message : unacked_)
            if (message.header.kind == MessageKind::kReply || message.header.kind == MessageKind::kConnect)
                message.done(message.argument);
    }
    RetransmitQueue(const RetransmitQueue&) = delete;
    RetransmitQueue& operator=(const RetransmitQueue&) = delete;

    // Numbers the message, and says with it what has come. It stays where it is until it is forgotten.
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
    // Whether that message of the PE is the next one; it is taken then. False for one that has come before, or comes
    // again.
    bool is_next(const Header& header) {
        if (header.sequence != received_ + 1)
            return false;
        ++received_;
        HEDDLE_INVARIANT(received_ == header.sequence);  // no message is taken twice, and none is left out
        return true;
    }
    // The PE has all up to there; false when there were not so many.
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
    uint64_t last_ = 0;
    uint64_t acked_ = 0;  // of them the other PE has these
    uint64_t received_ = 0;
    std::deque<Unacked> unacked_;
};

}  // namespace heddle::fabric
