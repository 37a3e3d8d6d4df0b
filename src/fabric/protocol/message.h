// Messages between channels: what the header says. The body of kRecords is records (fabric/protocol/record.h).
#pragma once

#include "fabric/transport/transport.h"

#include <cstdint>
#include <type_traits>

namespace heddle::fabric {

enum class MessageKind : uint32_t {
    kConnect,  // the first on an endpoint; body: the sender's address blob
    // position: of the first record in the stream; count: 0, or a stream set of the receiver and 1, complete: as a
    kRecords,
    // kAck's position for that stream set
    kAck,         // position: all records of the stream before it are complete
    kReply,       // position: number of the first return; count; body: each return, padded to words; complete
    kLargeData,   // large, but for those that are kept. position: of the kLarge record
    kLargeReply,  // likewise. position: number of the return
    // position: 0, or 1 more than the number of a PE that is lost, with kHasLeft when that has left by
    kHeartbeat,
    // shmem_finalize, which the sender itself may be; count: milliseconds for which the sender may be silent;
    // complete: the rails that are lost, a bit each; body: name of its host
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
