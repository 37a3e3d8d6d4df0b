#include "fabric/endpoint/control_inbox.h"

#include "base/invariant.h"
#include "os/locked.h"

#include <cstring>

namespace heddle::fabric {

ControlInbox::~ControlInbox() {
    pthread_mutex_destroy(&lock_);
}

size_t ControlInbox::Hash::operator()(const Source& source) const {
    constexpr uint64_t kSpread = 0x9e3779b97f4a7c15;  // 2^64 divided by the golden ratio (Knuth, volume 3, 6.4)
    uint64_t hash = source.key.team;
    for (const uint64_t field :
         {source.key.step, uint64_t{source.key.round}, uint64_t{source.key.piece}, static_cast<uint64_t>(source.pe)})
        hash = (hash ^ field) * kSpread;
    return hash >> 16 ^ hash;
}

void ControlInbox::deliver(const ControlKey& key, int from_pe, const char* data, size_t bytes) {
    const os::Locked locked(lock_);
    messages_[{key, from_pe}].emplace_back(data, data + bytes);
    ++received_;
}

uint64_t ControlInbox::received() {
    const os::Locked locked(lock_);
    return received_;
}

bool ControlInbox::take(const ControlKey& key, int from_pe, void* data, size_t bytes, size_t* length) {
    const os::Locked locked(lock_);
    const auto found = messages_.find({key, from_pe});
    if (found == messages_.end())
        return false;
    Messages& messages = found->second;
    HEDDLE_INVARIANT(!messages.empty());   // an entry leaves with its last message
    HEDDLE_INVARIANT(taken_ < received_);  // a message is taken once
    ++taken_;
    const std::vector<char>& message = messages.front();
    *length = message.size();
    if (*length <= bytes && *length != 0)
        memcpy(data, message.data(), *length);
    if (messages.size() == 1)
        messages_.erase(found);
    else
        messages.erase(messages.begin());
    return true;
}

}  // namespace heddle::fabric
