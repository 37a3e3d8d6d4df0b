// Messages between channels: a header of 64 bytes and a body. What all headers have is in Header; the fields of each
// kind are a struct with its name. The body of kRecords is records (fabric/protocol/record.h).
//
// Numbers are little-endian, and the bytes that no field names are 0. A receiver trusts none of them: Channel::dispatch
// and what it calls check every field.
//
// Threads: a header belongs to whoever holds it.
#pragma once

#include "base/invariant.h"
#include "fabric/transport/transport.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace heddle::fabric {

enum class MessageKind : uint32_t { kConnect, kRecords, kAck, kReply, kLargeData, kLargeReply, kHeartbeat, kGathered };
constexpr uint32_t kMessageKinds = 8;

// The first message on an endpoint. body: the sender's address blob.
struct ConnectHeader {
    static constexpr MessageKind kKind = MessageKind::kConnect;
};

// Records of a stream. body: the records. A piggyback ack may travel with them.
struct RecordsHeader {
    static constexpr MessageKind kKind = MessageKind::kRecords;
    uint64_t position = 0;          // of the first record in the stream
    uint64_t acked = 0;             // of the piggyback ack: its position
    uint32_t stream_set = 0;        // the sender's
    uint32_t acked_stream_set = 0;  // of the piggyback ack: 1 more than the receiver's stream set; 0: there is none
};

// All records of the receiver's stream before the position are complete at the sender of the ack. No body.
struct AckHeader {
    static constexpr MessageKind kKind = MessageKind::kAck;
    uint64_t position = 0;
    uint32_t stream_set = 0;  // the receiver's
    uint32_t unused = 0;
};

// Returns of the receiver's stream (ReturnRing). body: each return, padded to words. An ack of the stream travels
// along.
struct ReplyHeader {
    static constexpr MessageKind kKind = MessageKind::kReply;
    uint64_t first = 0;       // number of the first return, of those that are not native
    uint64_t acked = 0;       // as the position of an ack
    uint32_t count = 0;       // of returns
    uint32_t stream_set = 0;  // the receiver's
};

// The data of a kLarge record. body: the data. A large message (transport.h).
struct LargeDataHeader {
    static constexpr MessageKind kKind = MessageKind::kLargeData;
    uint64_t position = 0;    // of the record in the stream
    uint32_t stream_set = 0;  // the sender's
    uint32_t unused = 0;
};

// One return of kLargeBytes or more. body: its data. A large message.
struct LargeReplyHeader {
    static constexpr MessageKind kKind = MessageKind::kLargeReply;
    uint64_t number = 0;      // of the return, of those that are not native
    uint32_t stream_set = 0;  // the receiver's
    uint32_t unused = 0;
};

// The sender lives, and what it knows of others (fabric/liveness/heartbeat.h). body: the name of the sender's host.
struct HeartbeatHeader {
    static constexpr MessageKind kKind = MessageKind::kHeartbeat;
    int32_t lost_pe = -1;     // -1: none
    uint32_t has_left = 0;    // 1: the sender has left by shmem_finalize, and is silent from here on
    uint32_t timeout_ms = 0;  // for which the sender may be silent
    uint32_t lost_rails = 0;  // one bit each
};

// Acks, and records of several streams. body: their sections (fabric/protocol/gathered.h).
struct GatheredHeader {
    static constexpr MessageKind kKind = MessageKind::kGathered;
    uint32_t acks = 0;
    uint32_t streams = 0;
};

struct Header {
    uint64_t token = 0;  // of the job; a message without it comes from outside of the job
    // Of messages that are kept (fabric/multirail/retransmitting_transport.h), otherwise 0: the number of this message,
    // and the number up to which the sender has those of the receiver.
    uint64_t sequence = 0;
    uint64_t received = 0;
    int32_t pe = 0;     // the sender, a number of the world
    uint32_t rail = 0;  // of messages that are kept: their rail; a message whose rail is lost comes on another one
    MessageKind kind = MessageKind::kConnect;
    uint32_t large = 0;  // of messages that are kept: 1: a large message that travels whole

    Header() = default;
    // The header of a message of that kind; the channel fills in what all headers have.
    template <class Fields>
        requires requires { Fields::kKind; }
    Header(const Fields& of_kind) : kind(Fields::kKind) {  // NOLINT(google-explicit-constructor)
        set(of_kind);
    }

    // The fields of a header of that kind.
    template <class Fields>
    Fields as() const {
        HEDDLE_INVARIANT_MSG(kind == Fields::kKind, "kind %u", static_cast<unsigned>(kind));
        Fields of_kind;
        if constexpr (!std::is_empty_v<Fields>)
            memcpy(&of_kind, fields, sizeof of_kind);
        return of_kind;
    }
    template <class Fields>
    void set(const Fields& of_kind) {
        HEDDLE_INVARIANT_MSG(kind == Fields::kKind, "kind %u", static_cast<unsigned>(kind));
        if constexpr (!std::is_empty_v<Fields>) {
            static_assert(std::has_unique_object_representations_v<Fields>, "no padding goes over the network");
            static_assert(sizeof of_kind <= sizeof fields);
            memcpy(fields, &of_kind, sizeof of_kind);
        }
    }

    char fields[24] = {};  // by as and set alone
};
static_assert(sizeof(Header) == kHeaderBytes && std::is_trivially_copyable_v<Header>);

// The kind and the fields of a header, for messages: of a peer that sends what it should not.
using HeaderText = std::array<char, 160>;
HeaderText describe(const Header& header);

}  // namespace heddle::fabric
