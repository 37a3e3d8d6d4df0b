#include "fabric/endpoint/address_book.h"

#include "base/invariant.h"
#include "fabric/transport/transport.h"
#include "os/locked.h"

#include <cstdio>
#include <cstring>

namespace heddle::fabric {

AddressBook::~AddressBook() {
    pthread_cond_destroy(&changed_);
    pthread_mutex_destroy(&lock_);
}

// Under the lock.
void AddressBook::set(Entry& entry, State state, const char* text, size_t bytes) {
    HEDDLE_INVARIANT(entry.state != State::kKnown);
    entry.state = state;
    entry.text.assign(text, bytes);
    pthread_cond_broadcast(&changed_);
}

const std::string* AddressBook::find(int pe, LookUp look_up, char* error, size_t error_bytes) {
    os::Locked locked(lock_);
    Entry& entry = entries_[pe];
    while (entry.state == State::kLookedUp) pthread_cond_wait(&changed_, &lock_);
    if (entry.state == State::kUnknown) {
        entry.state = State::kLookedUp;
        pthread_mutex_unlock(&lock_);
        char address_blob[kMaxAddressBlobBytes], reason[512] = "";
        const size_t bytes = look_up(pe, address_blob, reason, sizeof reason);
        pthread_mutex_lock(&lock_);
        if (entry.state == State::kLookedUp)  // it has not been learned meanwhile
            bytes ? set(entry, State::kKnown, address_blob, bytes) : set(entry, State::kFailed, reason, strlen(reason));
    }
    if (entry.state == State::kKnown)
        return &entry.text;
    snprintf(error, error_bytes, "%s", entry.text.c_str());
    return nullptr;
}

void AddressBook::learn(int pe, const char* address_blob, size_t bytes) {
    const os::Locked locked(lock_);
    if (Entry& entry = entries_[pe]; entry.state != State::kKnown)
        set(entry, State::kKnown, address_blob, bytes);
}

}  // namespace heddle::fabric
