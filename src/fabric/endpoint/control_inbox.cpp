#include "fabric/endpoint/control_inbox.h"

#include <algorithm>
#include <cstring>

namespace heddle::fabric {

namespace {

class Locked {
  public:
    explicit Locked(pthread_mutex_t& lock) : lock_(lock) { pthread_mutex_lock(&lock_); }
    ~Locked() { pthread_mutex_unlock(&lock_); }
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;

  private:
    pthread_mutex_t& lock_;
};

}  // namespace

ControlInbox::~ControlInbox() {
    pthread_mutex_destroy(&lock_);
}

void ControlInbox::deliver(uint64_t key, uint32_t from, const char* data, size_t bytes) {
    const Locked locked(lock_);
    messages_[key].push_back({from, {data, data + bytes}});
    ++received_;
}

uint64_t ControlInbox::received() {
    const Locked locked(lock_);
    return received_;
}

bool ControlInbox::take(uint64_t key, uint32_t from, void* data, size_t bytes, size_t* length) {
    const Locked locked(lock_);
    const auto found = messages_.find(key);
    if (found == messages_.end())
        return false;
    std::vector<ControlMessage>& messages = found->second;
    const auto message =
        std::find_if(messages.begin(), messages.end(), [&](const ControlMessage& one) { return one.from == from; });
    if (message == messages.end())
        return false;
    *length = message->data.size();
    if (const size_t copied = std::min(bytes, *length); copied != 0)
        memcpy(data, message->data.data(), copied);
    if (messages.size() == 1)
        messages_.erase(found);
    else
        messages.erase(message);
    return true;
}

}  // namespace heddle::fabric
