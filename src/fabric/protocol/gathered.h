// Gathered messages: acks, and records of several streams, in one message to a PE. Its body is
//     acks        so many times AckSection
//     streams     so many times RecordsSection and the records
// A section is as good as a message of its own kind: kAck, kRecords. Sections of one stream are in its order.
//
// The writer copies records: streams may overwrite them at once. The reader trusts no number.
//
// Threads: a message belongs to whoever writes or reads it.
#pragma once

#include "base/invariant.h"
#include "fabric/protocol/message.h"
#include "fabric/protocol/record.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace heddle::fabric {

struct AckSection {
    uint64_t position = 0;
    uint32_t stream_set = 0;  // the receiver's
    uint32_t unused = 0;
};
struct RecordsSection {
    uint64_t position = 0;    // of the first record in the stream
    uint32_t stream_set = 0;  // the sender's
    uint32_t bytes = 0;       // of the records
};

// A gathered message that is being written: at most kBytes, acks first.
class GatheredMessage {
  public:
    static constexpr size_t kBytes = 60 * 1024;

    GatheredMessage() = default;
    ~GatheredMessage();
    GatheredMessage(const GatheredMessage&) = delete;
    GatheredMessage& operator=(const GatheredMessage&) = delete;

    bool is_empty() const { return bytes_ == 0; }
    // A section fits whose records have so many bytes; an ack has none.
    bool has_room(size_t records_bytes) const { return bytes_ + sizeof(RecordsSection) + records_bytes <= kBytes; }
    // Where has_room.
    void add(const AckSection& ack);
    void add(const RecordsSection& section, const char* records);

    GatheredHeader header() const { return header_; }
    size_t bytes() const { return bytes_; }
    // The body, which the caller frees by release. The message is empty from here on.
    char* take_body();
    static void release(void* body);

  private:
    void append(const void* from, size_t bytes);

    GatheredHeader header_;
    char* body_ = nullptr;  // null: the message is empty
    size_t bytes_ = 0;
};

// Calls on_ack(section) for each ack, and on_records(section, records) for each stream's records. Returns why the rest
// of the body is refused, or null.
template <class VisitAck, class VisitRecords>
const char* read_gathered(const GatheredHeader& header, const char* body, size_t bytes, VisitAck on_ack,
                          VisitRecords on_records) {
    constexpr const char* kShort = "a gathered message that ends in the middle of a section";
    const auto take = [&](void* to, size_t size) {
        if (bytes < size)
            return false;
        memcpy(to, body, size);
        body += size;
        bytes -= size;
        return true;
    };
    for (uint32_t i = 0; i < header.acks; ++i) {
        AckSection ack;
        if (!take(&ack, sizeof ack))
            return kShort;
        on_ack(ack);
    }
    for (uint32_t i = 0; i < header.streams; ++i) {
        RecordsSection section;
        if (!take(&section, sizeof section) || section.bytes > bytes)
            return kShort;
        if (section.bytes % record::kWord != 0)
            return "a section that is not of whole words";
        on_records(section, body);
        body += section.bytes;
        bytes -= section.bytes;
    }
    return bytes == 0 ? nullptr : "a gathered message with more than its sections";
}

}  // namespace heddle::fabric
