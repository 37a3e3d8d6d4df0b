// Messages between channels: what the header says. The body of kRecords is records (fabric/protocol/record.h).
#pragma once

#include "fabric/transport/transport.h"

#include <cstdint>
#include <type_traits>

namespace heddle::fabric {

// The kinds of messages, and what `position`, `count`, `complete` and the body of each mean. Kinds that do not name
// a field leave it 0.
enum class MessageKind : uint32_t {
    // The first message on an endpoint. body: the sender's address blob.
    kConnect,
    // position: of the first record in the stream. body: records. An ack may travel with it: count is then 1 more than
    // the number of the receiver's stream set that is acknowledged, and complete the position of the ack.
    kRecords,
    // position: all records of the stream before it are complete at the sender of the ack.
    kAck,
    // position: number of the first return. count: of returns. body: each return, padded to words. complete: as the
    // position of a kAck.
    kReply,
    // position: of the kLarge record. body: its data. A large message (transport.h), unless messages are kept.
    kLargeData,
    // position: number of the return. body: its data. A large message, unless messages are kept.
    kLargeReply,
    // position: 0, or 1 more than the number of a PE that is lost; with kHasLeft when that PE, which may be the sender,
    // has left by shmem_finalize. count: milliseconds for which the sender may be silent. complete: the rails that are
    // lost, one bit each. body: the name of the sender's host.
    kHeartbeat,
};
constexpr uint64_t kHasLeft = uint64_t{1} << 63;
constexpr uint32_t kMessageKinds = 7;

struct Header {
    uint64_t token = 0;  // of the job: who lacks it is not one of its PEs
    uint64_t position = 0;
    uint32_t count = 0;
    MessageKind kind = MessageKind::kConnect;
    int32_t pe = 0;           // the sender, a number of the world
    uint32_t stream_set = 0;  // of the stream: the sender's, in answers the receiver's
    uint64_t complete = 0;    // as the position of a kAck: it comes along
    // Of messages that are kept (fabric/multirail/retransmit_queue.h): the number, and up to where those of the
    // receiver have come.
    uint64_t sequence = 0;
    uint64_t received = 0;
    uint64_t rail = 0;  // of the channel that it belongs to, whatever it comes on
};
static_assert(sizeof(Header) == kHeaderBytes && std::is_trivially_copyable_v<Header>);

}  // namespace heddle::fabric
