// The keys of the distributed hash table: as many different keys as fill half of the table, and half as many repeated
// ones. A seed draws them.
#pragma once

#include <cstdint>

#include "apps/gups/table.hpp"
#include "programs/common/validation.hpp"

namespace shmem_mt {

class HashKeys {
  public:
    // A word of the table that is taken: 43 bits of key, never 0, above 20 bits of value. Bits of the key's hash say
    // where the search for it begins and what its value is.
    struct Entry {
        long word;
        TablePlace place;
    };

    HashKeys(const GupsTable& table, long seed)
        : table_(table), seed_(seed), factor_(pattern_word(seed, 1, 0) | 1), different_(table.all_words() / 4 * 2) {}

    long different() const { return different_; }
    long insertions() const { return different_ / 2 * 3; }

    // The key that this insertion is of: two of three are of a new one.
    long key_of(long insertion) const {
        const long third = insertion / 3, rest = insertion % 3;
        if (rest < 2)
            return 2 * third + rest;
        return static_cast<long>(pattern_word(seed_, 2, insertion) % static_cast<uint64_t>(different_));
    }

    Entry entry(long number) const {
        const uint64_t key = static_cast<uint64_t>(number + 1) * factor_ & kLargestKey;  // one to one: factor_ is odd
        const uint64_t hash = pattern_word(seed_, 0, static_cast<long>(key));
        return {static_cast<long>(key << kValueBits | (hash & ((1 << kValueBits) - 1))), table_.place(hash)};
    }

  private:
    static constexpr int kValueBits = 20;
    static constexpr uint64_t kLargestKey = (uint64_t{1} << (63 - kValueBits)) - 1;

    const GupsTable& table_;
    const long seed_;
    const uint64_t factor_;
    const long different_;
};

}  // namespace shmem_mt
