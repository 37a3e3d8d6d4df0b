#include "fabric/mailbox.h"

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

Mailbox::~Mailbox() {
    pthread_mutex_destroy(&lock_);
}

void Mailbox::deliver(uint64_t key, uint32_t from, const char* data, size_t bytes) {
    const Locked locked(lock_);
    letters_[key].push_back({from, {data, data + bytes}});
    ++delivered_;
}

uint64_t Mailbox::delivered() {
    const Locked locked(lock_);
    return delivered_;
}

bool Mailbox::take(uint64_t key, uint32_t from, void* data, size_t bytes, size_t* length) {
    const Locked locked(lock_);
    const auto found = letters_.find(key);
    if (found == letters_.end())
        return false;
    std::vector<Letter>& letters = found->second;
    const auto letter =
        std::find_if(letters.begin(), letters.end(), [&](const Letter& one) { return one.from == from; });
    if (letter == letters.end())
        return false;
    *length = letter->data.size();
    if (const size_t copied = std::min(bytes, *length); copied != 0)
        memcpy(data, letter->data.data(), copied);
    if (letters.size() == 1)
        letters_.erase(found);
    else
        letters.erase(letter);
    return true;
}

}  // namespace heddle::fabric
