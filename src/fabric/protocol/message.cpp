#include "fabric/protocol/message.h"

#include <cinttypes>
#include <cstdarg>
#include <cstdio>

namespace heddle::fabric {

namespace {

__attribute__((format(printf, 1, 2))) HeaderText print(const char* format, ...) {
    HeaderText text;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text.data(), text.size(), format, arguments);
    va_end(arguments);
    return text;
}

}  // namespace

HeaderText describe(const Header& header) {
    switch (header.kind) {
        case MessageKind::kConnect:
            return print("the first message of a connection");
        case MessageKind::kRecords: {
            const auto records = header.as<RecordsHeader>();
            if (records.acked_stream_set == 0)
                return print("records from position %" PRIu64 " on of stream set %u", records.position,
                             records.stream_set);
            return print("records from position %" PRIu64
                         " on of stream set %u, with an ack of stream set %u up to %" PRIu64,
                         records.position, records.stream_set, records.acked_stream_set - 1, records.acked);
        }
        case MessageKind::kAck: {
            const auto ack = header.as<AckHeader>();
            return print("an ack of stream set %u up to position %" PRIu64, ack.stream_set, ack.position);
        }
        case MessageKind::kReply: {
            const auto reply = header.as<ReplyHeader>();
            return print("%u replies from number %" PRIu64 " on to stream set %u, with an ack up to position %" PRIu64,
                         reply.count, reply.first, reply.stream_set, reply.acked);
        }
        case MessageKind::kLargeData: {
            const auto data = header.as<LargeDataHeader>();
            return print("large data of position %" PRIu64 " of stream set %u", data.position, data.stream_set);
        }
        case MessageKind::kLargeReply: {
            const auto reply = header.as<LargeReplyHeader>();
            return print("the large reply of number %" PRIu64 " to stream set %u", reply.number, reply.stream_set);
        }
        case MessageKind::kHeartbeat: {
            const auto heartbeat = header.as<HeartbeatHeader>();
            return print("a heartbeat, lost PE %d, left %u, timeout %u ms, lost rails %#x", heartbeat.lost_pe,
                         heartbeat.has_left, heartbeat.timeout_ms, heartbeat.lost_rails);
        }
        case MessageKind::kGathered: {
            const auto gathered = header.as<GatheredHeader>();
            return print("%u acks and records of %u streams in one message", gathered.acks, gathered.streams);
        }
    }
    return print("a message of kind %u", static_cast<unsigned>(header.kind));
}

}  // namespace heddle::fabric
