// Peer: what a channel knows of one PE. Its connection, what arrives from it, and what waits to leave to it in short
// messages: records of streams, and acks. What waits leaves together, in one message (fabric/protocol/gathered.h).
//
// Short messages of records leave at once while fewer than kMaxBusy streams to the PE are busy. From there on they wait
// for the next ack of that PE, whichever stream it is for, and all leave then. A stream is busy while it has short
// messages in flight and nothing else: the acks of those are not delayed for long. Therefore no record waits for large
// data of other streams, and records wait only where acks are on their way:
//
//     records wait  =>  n_busy >= kMaxBusy
//
// Of acks that the target delays (Channel::delay_ack) fewer than kMaxBusy are outstanding for one PE.
//
// Threads: under the channel's lock. Memory that reads as zeroes is a peer to which nothing was sent.
#pragma once

#include "fabric/endpoint/inbound.h"
#include "fabric/endpoint/intrusive_list.h"
#include "fabric/endpoint/stream.h"

#include <cstddef>
#include <cstdint>

namespace heddle::fabric {

struct Endpoint;

constexpr uint32_t kMaxBusy = 4;
constexpr size_t kShortMessage = 4096;  // a message of fewer bytes is short

struct Peer {
    Endpoint* endpoint = nullptr;        // null: nothing was sent to the PE yet
    Endpoint* large_endpoint = nullptr;  // of large data; null: none was sent to the PE yet, or there is one endpoint
    // Its streams to this PE, by stream set, below kMaxStreamSets; null: nothing has come on that stream.
    Inbound** inbounds = nullptr;
    uint32_t n_inbounds = 0;

    uint32_t n_busy = 0;                                // streams to the PE
    uint32_t n_acks = 0;                                // in the list
    bool ack_due = false;                               // they leave in this turn
    bool was_acked = false;                             // an ack has come in this turn: records leave
    IntrusiveList<Stream, &Stream::gathering> streams;  // those that have a short message of records to send
    IntrusiveList<Inbound, &Inbound::to_ack> acks;      // inbound streams that have something to acknowledge
    ListLink<Peer> to_send, delayed_acks;               // the channel's lists: looked at in this turn, or in the next

    void add_ack(Inbound& inbound) {
        if (inbound.to_ack.is_listed)
            return;
        acks.add(inbound);
        ++n_acks;
    }
    // An inbound stream that has something to acknowledge still; null: there is none.
    Inbound* take_ack() {
        while (Inbound* const inbound = acks.take()) {
            --n_acks;
            if (inbound->has_ack())
                return inbound;
        }
        return nullptr;
    }
};

}  // namespace heddle::fabric
