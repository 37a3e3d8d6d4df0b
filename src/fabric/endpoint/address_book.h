// Address book: the address blobs of the PEs that this one sends to. The job is asked once a PE, whatever channels,
// rails and threads need the blob; never, where the PE has sent its own first (kConnect).
//
//     find    by a producer, ahead of its first stream to a PE and without a lock: the job may take its time, and all
//             other threads go on. Threads that ask for a PE that is being looked up wait for that one.
//     learn   by the holder of a channel's lock, from a kConnect: ends such waits, too
//
// Invariant: a blob does not change once it is known. Threads: any.
#pragma once

#include <pthread.h>
#include <cstddef>
#include <string>
#include <unordered_map>

namespace heddle::fabric {

class AddressBook {
  public:
    // As JobCallbacks::address_blob_of.
    using LookUp = size_t (*)(int pe, char* address_blob, char* error, size_t error_bytes);

    AddressBook() = default;
    ~AddressBook();
    AddressBook(const AddressBook&) = delete;
    AddressBook& operator=(const AddressBook&) = delete;

    // The address blob of pe, for as long as this object lives; null with the reason in error. What the job does not
    // know is not asked again.
    const std::string* find(int pe, LookUp look_up, char* error, size_t error_bytes);
    // The PE has sent its address blob.
    void learn(int pe, const char* address_blob, size_t bytes);

  private:
    enum class State { kUnknown, kLookedUp, kKnown, kFailed };
    struct Entry {
        State state = State::kUnknown;
        std::string text;  // kKnown: the address blob; kFailed: the reason
    };

    void set(Entry& entry, State state, const char* text, size_t bytes);

    pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t changed_ = PTHREAD_COND_INITIALIZER;
    std::unordered_map<int, Entry> entries_;  // by PE; an entry stays where it is
};

}  // namespace heddle::fabric
