// Snapshot: a value in shared memory that one thread at a time replaces, and that threads of any process read whole (a
// sequence lock over two copies). Begins zeroed, and then reads as zeroes. A reader never keeps the writer waiting, and
// a writer that stops half-way, or dies there, leaves the value before to readers.
//
// Each word is stored with release and loaded with acquire. A reader that sees a word of the write after the next one
// therefore also sees that the version has changed. On x86-64 these are plain loads and stores.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace heddle::sync {

template <class T>
class Snapshot {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % sizeof(uint64_t) == 0);

  public:
    // Replaces the value. One thread at a time.
    void write(const T& value) {
        uint64_t words[kWords];
        memcpy(words, &value, sizeof value);
        const uint32_t version = version_.load(std::memory_order_relaxed) + 1;
        for (size_t i = 0; i < kWords; ++i)
            copies_[version % 2][i].store(words[i], std::memory_order_release);  // pairs with Snapshot::read
        version_.store(version, std::memory_order_release);                      // pairs with Snapshot::read
    }

    // False when the value changes again and again.
    bool read(T* value) const {
        constexpr int kTries = 100;
        for (int i = 0; i < kTries; ++i) {
            uint64_t words[kWords];
            const uint32_t version = version_.load(std::memory_order_acquire);  // pairs with Snapshot::write
            for (size_t word = 0; word < kWords; ++word)
                words[word] = copies_[version % 2][word].load(std::memory_order_acquire);  // pairs with Snapshot::write
            // Relaxed: the acquire loads in front are ordered before.
            if (version_.load(std::memory_order_relaxed) != version)
                continue;
            memcpy(static_cast<void*>(value), words, sizeof *value);
            return true;
        }
        return false;
    }

  private:
    static constexpr size_t kWords = sizeof(T) / sizeof(uint64_t);

    std::atomic<uint32_t> version_;  // the number of writes; its last bit names the copy that is whole
    std::atomic<uint64_t> copies_[2][kWords];
};

}  // namespace heddle::sync
