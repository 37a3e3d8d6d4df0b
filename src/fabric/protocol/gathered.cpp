#include "fabric/protocol/gathered.h"

#include "base/error.h"

#include <cstdlib>
#include <utility>

namespace heddle::fabric {

GatheredMessage::~GatheredMessage() {
    release(body_);
}

void GatheredMessage::append(const void* from, size_t bytes) {
    if (!body_)
        body_ = static_cast<char*>(malloc(kBytes));
    if (!body_)
        base::fatal("network", "no memory for a message of %zu bytes", kBytes);
    HEDDLE_INVARIANT(bytes <= kBytes - bytes_);
    memcpy(body_ + bytes_, from, bytes);
    bytes_ += bytes;
}

void GatheredMessage::add(const AckSection& ack) {
    HEDDLE_INVARIANT(header_.streams == 0);  // acks are read first
    append(&ack, sizeof ack);
    ++header_.acks;
}

void GatheredMessage::add(const RecordsSection& section, const char* records) {
    HEDDLE_INVARIANT(section.bytes != 0 && section.bytes % record::kWord == 0);
    append(&section, sizeof section);
    append(records, section.bytes);
    ++header_.streams;
}

char* GatheredMessage::take_body() {
    header_ = {};
    bytes_ = 0;
    return std::exchange(body_, nullptr);
}

void GatheredMessage::release(void* body) {
    free(body);
}

}  // namespace heddle::fabric
