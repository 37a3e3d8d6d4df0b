// Headers of any kind from five numbers, as a peer or a fuzzer may have written them; for tests and the fuzzer.
#pragma once

#include "fabric/protocol/message.h"

#include <cstdint>

namespace heddle::fabric {

// What of them the kind has. position: or the number of a return; acked: of an ack that comes along, or the number of streams; count: of returns,
// of acks, or 1 more than the stream set of a piggyback ack.
inline Header header_of(MessageKind kind, uint32_t stream_set, uint64_t position, uint32_t count = 0,
                        uint64_t acked = 0) {
    switch (kind) {
        case MessageKind::kConnect:
            return ConnectHeader{};
        case MessageKind::kRecords:
            return RecordsHeader{
                .position = position, .acked = acked, .stream_set = stream_set, .acked_stream_set = count};
        case MessageKind::kAck:
            return AckHeader{.position = position, .stream_set = stream_set};
        case MessageKind::kReply:
            return ReplyHeader{.first = position, .acked = acked, .count = count, .stream_set = stream_set};
        case MessageKind::kLargeData:
            return LargeDataHeader{.position = position, .stream_set = stream_set};
        case MessageKind::kLargeReply:
            return LargeReplyHeader{.number = position, .stream_set = stream_set};
        case MessageKind::kHeartbeat:
            return HeartbeatHeader{.lost_pe = static_cast<int32_t>(position),
                                   .has_left = stream_set,
                                   .timeout_ms = count,
                                   .lost_rails = static_cast<uint32_t>(acked)};
        case MessageKind::kGathered:
            return GatheredHeader{.acks = count, .streams = static_cast<uint32_t>(acked)};
    }
    Header unknown;
    unknown.kind = kind;
    return unknown;
}

// The same as a PE of the job sends it, or one that says it is.
inline Header sent_by(Header header, int32_t pe, uint64_t token) {
    header.pe = pe;
    header.token = token;
    return header;
}

}  // namespace heddle::fabric
