// Link: the messages of one wire to one PE, numbered, and kept until that PE says that it has them; so that, when their
// rail is lost, they go over another one, and none is taken twice. Only where the job is to go on without a rail
// (HEDDLE_RAIL_LOSS=continue); the transport's own word that a message is gone counts for nothing there.
//
// Messages arrive in the order of their numbers. When a rail is lost, what is kept is sent again over another one, from
// the oldest on; what comes late over the first has been taken, or will come again. So only the next number is taken.
//
// Under the wire's lock.
#pragma once

#include "fabric/message.h"
#include "fabric/transport.h"

#include <cstddef>
#include <cstdint>
#include <deque>

namespace heddle::fabric {

struct Kept {
    Header header;
    const char* body;  // stays as it is until done
    size_t bytes;
    Done done;
    void* argument;
    bool gone = false;  // the transport has let go of it
    class Link* link = nullptr;
};

class Link {
  public:
    explicit Link(int pe) : pe_(pe) {}
    // Bodies that nobody else has go with it.
    ~Link() {
        for (const Kept& message : kept_)
            if (message.header.kind == MessageKind::kReply || message.header.kind == MessageKind::kHello)
                message.done(message.argument);
    }
    Link(const Link&) = delete;
    Link& operator=(const Link&) = delete;

    // Numbers the message, and says with it what has come. It stays where it is until it is forgotten.
    Kept& keep(const Kept& message) {
        Kept& kept = kept_.emplace_back(message);
        kept.link = this;
        kept.header.sequence = ++last_;
        kept.header.received = received_;
        return kept;
    }
    // The transport's Done for a Kept.
    static void on_gone(void* message) {
        static_cast<Kept*>(message)->gone = true;
        static_cast<Kept*>(message)->link->forget();
    }
    // Whether that message of the PE is the next one; it is taken then. False for one that has come before, or comes
    // again.
    bool takes(const Header& header) {
        if (header.sequence != received_ + 1)
            return false;
        ++received_;
        return true;
    }
    // The PE has all up to there; false when there were not so many.
    bool has(uint64_t sequence) {
        if (sequence > last_)
            return false;
        there_ = sequence > there_ ? sequence : there_;
        forget();
        return true;
    }

    int pe() const { return pe_; }
    const std::deque<Kept>& kept() const { return kept_; }

  private:
    void forget() {
        while (!kept_.empty() && kept_.front().gone && kept_.front().header.sequence <= there_) {
            const Kept message = kept_.front();
            kept_.pop_front();
            if (message.done)
                message.done(message.argument);  // may send, or come here again
        }
    }

    const int pe_;
    uint64_t last_ = 0;
    uint64_t there_ = 0;  // of them the other PE has these
    uint64_t received_ = 0;
    std::deque<Kept> kept_;
};

}  // namespace heddle::fabric
