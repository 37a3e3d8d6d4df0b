#include "fabric/endpoint/control_inbox.h"

#include "base/invariant.h"
#include "os/locked.h"

#include <algorithm>
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

bool ControlInbox::deliver(const ControlKey& key, int from_pe, const char* data, size_t bytes) {
    const os::Locked locked(lock_);
    size_t& waiting_bytes = waiting_bytes_[from_pe];
    if (static_cast<int64_t>(waiting_bytes + bytes + kOverheadBytes) > allowed_)
        return false;
    waiting_bytes += bytes + kOverheadBytes;
    most_waiting_ = std::max(most_waiting_, received_ + 1 - taken_);
    messages_[{key, from_pe}].emplace_back(data, data + bytes);
    ++received_;
    return true;
}

void ControlInbox::allow(int64_t bytes) {
    const os::Locked locked(lock_);
    allowed_ += bytes;
    HEDDLE_INVARIANT(allowed_ > 0);
}

uint64_t ControlInbox::most_waiting() {
    const os::Locked locked(lock_);
    return most_waiting_;
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
    const auto waiting_bytes = waiting_bytes_.find(from_pe);
    if ((waiting_bytes->second -= message.size() + kOverheadBytes) == 0)
        waiting_bytes_.erase(waiting_bytes);
    if (*length <= bytes && *length != 0)
        memcpy(data, message.data(), *length);
    if (messages.size() == 1)
        messages_.erase(found);
    else
        messages.erase(messages.begin());
    return true;
}

}  // namespace heddle::fabric
