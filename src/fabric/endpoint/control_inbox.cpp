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
    for (const uint64_t field : {source.key.step, uint64_t{source.key.round}, uint64_t{source.key.piece},
                                 source.key.call, static_cast<uint64_t>(source.pe)})
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
    StepCalls& waiting = waiting_[{key.team, key.step}];
    if (waiting.count++ == 0) {
        waiting.call = key.call;
        waiting.pe = from_pe;
    } else if (key.call != waiting.call) {
        waiting.other_call = key.call;
        waiting.other_pe = from_pe;
    }
    if (watched_messages_ && key.team == watched_team_)
        watched_messages_->advance();
    return true;
}

void ControlInbox::watch(uint64_t team, sync::EventCount* messages) {
    const os::Locked locked(lock_);
    watched_team_ = team;
    watched_messages_ = messages;
}

ControlInbox::Stray ControlInbox::find_stray(const ControlKey& key) const {
    const auto oldest = waiting_.lower_bound({key.team, 0});
    if (oldest == waiting_.end() || oldest->first > Step{key.team, key.step})
        return {};
    const StepCalls& waiting = oldest->second;
    if (oldest->first.second != key.step || waiting.call != key.call)
        return {waiting.pe, oldest->first.second, waiting.call};
    return {waiting.other_pe, key.step, waiting.other_call};
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

bool ControlInbox::take(const ControlKey& key, int from_pe, void* data, size_t bytes, size_t* length, Stray* stray) {
    const os::Locked locked(lock_);
    const auto found = messages_.find({key, from_pe});
    if (found == messages_.end()) {
        if (stray)
            *stray = find_stray(key);
        return false;
    }
    const auto waiting = waiting_.find({key.team, key.step});
    HEDDLE_INVARIANT(waiting != waiting_.end());  // it counts the messages of the step
    if (--waiting->second.count == 0)
        waiting_.erase(waiting);
    Messages& messages = found->second;
    HEDDLE_INVARIANT(!messages.empty());   // an entry leaves with its last message
    HEDDLE_INVARIANT(taken_ < received_);  // a message is taken once
    ++taken_;
    const std::vector<char>& message = messages.front();
    *length = message.size();
    const auto waiting_bytes = waiting_bytes_.find(from_pe);
    waiting_bytes->second -= message.size() + kOverheadBytes;
    if (waiting_bytes->second == 0)
        waiting_bytes_.erase(waiting_bytes);
    if (*length <= bytes && *length != 0)
        memcpy(data, message.data(), *length);
    if (messages.size() == 1)
        messages_.erase(found);
    else
        messages.pop_front();
    return true;
}

}  // namespace heddle::fabric
