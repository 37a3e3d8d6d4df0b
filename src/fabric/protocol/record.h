// Records: what a PE asks of another one's memory, as bytes in a stream. This page is the protocol; the writers are
// here because they run for every operation, the reader, which trusts nothing, is in record.cpp.
//
// All words are 64 bits, little-endian. A record begins with a word
//     offset : 48 | region : 2 | kind : 4 | small : 10
// and takes whole words:
//     kPut      small bytes of data (1 to kMaxSmallPut), padded
//     kLongPut  word: bytes; the data, padded
//     kLarge    word: bytes; the data comes as a large message that names the record's position in the stream
//     kGet      word: bytes; the data goes back in a reply
//     kAtomic   small: operation | kWide | kFetch; word: operand; for compare-swap a word: the value expected. With
//               kFetch the old value goes back in a reply, as a word
//     kSignal   small: 0 set, 1 add; word: value. Whoever sees the signal sees what came before it in the stream
//     kControl  no address, but in its bits the key's step; word: the key's team; word: the key's round : 32 | its
//               piece : 16 | bytes : 16; the data, padded (fabric/endpoint/control_inbox.h)
//     kOrder    the records behind it are applied when all before it is complete, large data too
//     kAfter    no address; small: a rail; word: a position. The records behind it are applied when the stream of the
//               same stream set on that rail is complete up to the position (fabric/multirail/rail_scheduler.h)
// Replies come in the order of the records that ask for them.
//
// Cost of an 8-byte put: two stores here, and about 2 ns for the PE that applies it.
#pragma once

#include "base/invariant.h"
#include "fabric/transport/transport.h"

#include <heddle/abi.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace heddle::fabric {

// The memory of a PE that others write and read: the same region and offset mean the same object on all PEs.
enum class RegionName : uint8_t { kHeap, kData };
static_assert(static_cast<int>(RegionName::kData) == kRegions - 1);

// An object on any PE.
struct Address {
    uint64_t offset = 0;
    RegionName region = RegionName::kHeap;
};

enum class Kind : uint8_t { kPut, kLongPut, kLarge, kGet, kAtomic, kSignal, kControl, kOrder, kAfter };

// What a control message is for. Its reader and its sender in a collective have the same key; two messages belong
// together only when all fields are equal.
struct ControlKey {
    uint64_t team = 0;   // the id of the team (team/team.h)
    uint64_t step = 0;   // the number of the collective among those of the team; below 2^48
    uint32_t round = 0;  // tells apart what one member sends another within the step
    uint16_t piece = 0;  // the number of the message within a round that takes several, modulo 2^16
    uint64_t call = 0;   // the sender's collective and its size (InternodeStep): alike on members whose calls are right

    bool operator==(const ControlKey&) const = default;
};

// Data of so many bytes is not copied into a ring: a put of it is a kLarge record, a reply of it a large message
// (docs/decisions/0012).
constexpr size_t kLargeBytes = 32 * 1024;

namespace record {

constexpr int kOffsetBits = 48, kRegionShift = 48, kKindShift = 50, kSmallShift = 54;
constexpr uint64_t kOffsetMask = (uint64_t{1} << kOffsetBits) - 1;
constexpr size_t kWord = 8;
constexpr size_t kMaxSmallPut = 512;
constexpr size_t kMaxControlBytes = UINT16_MAX;
constexpr unsigned kOperationMask = 7, kWide = 8, kFetch = 16;

constexpr uint64_t head(Kind kind, Address at, size_t small = 0) {
    return at.offset | static_cast<uint64_t>(at.region) << kRegionShift | static_cast<uint64_t>(kind) << kKindShift |
           static_cast<uint64_t>(small) << kSmallShift;
}

constexpr size_t padded(size_t bytes) {
    return (bytes + kWord - 1) / kWord * kWord;
}

inline char* word(char* at, uint64_t value) {
    memcpy(at, &value, kWord);
    return at + kWord;
}

// Each of the following functions writes one record at `at`, where there is room for it, and returns the place behind
// it.
inline char* put_word(char* at, Address to, uint64_t bits, size_t bytes) {
    return word(word(at, head(Kind::kPut, to, bytes)), bits);
}

inline char* put(char* at, Address to, const void* from, size_t bytes) {
    if (bytes <= kMaxSmallPut)
        at = word(at, head(Kind::kPut, to, bytes));
    else
        at = word(word(at, head(Kind::kLongPut, to)), bytes);
    memcpy(at, from, bytes);
    return at + padded(bytes);
}

constexpr size_t put_bytes(size_t bytes) {
    return (bytes <= kMaxSmallPut ? kWord : 2 * kWord) + padded(bytes);
}

inline char* large(char* at, Address to, size_t bytes) {
    return word(word(at, head(Kind::kLarge, to)), bytes);
}

inline char* get(char* at, Address from, size_t bytes) {
    return word(word(at, head(Kind::kGet, from)), bytes);
}

inline char* atomic(char* at, Address to, heddle_amo_op op, uint64_t operand, uint64_t compare, size_t bytes,
                    bool fetch) {
    const unsigned small = static_cast<unsigned>(op) | (bytes == kWord ? kWide : 0) | (fetch ? kFetch : 0);
    at = word(word(at, head(Kind::kAtomic, to, small)), operand);
    return op == HEDDLE_AMO_COMPARE_SWAP ? word(at, compare) : at;
}

inline char* signal(char* at, Address to, uint64_t value, bool add) {
    return word(word(at, head(Kind::kSignal, to, add)), value);
}

inline char* control(char* at, const ControlKey& key, const void* data, size_t bytes) {
    // The fields fit into their bits: what is cut off would match another message.
    HEDDLE_INVARIANT(key.step <= kOffsetMask);
    HEDDLE_INVARIANT_MSG(bytes <= kMaxControlBytes, "%zu bytes", bytes);
    at = word(word(word(at, head(Kind::kControl, {key.step})), key.team), key.call);
    at = word(at, uint64_t{key.round} << 32 | uint64_t{key.piece} << 16 | bytes);
    if (bytes != 0)
        memcpy(at, data, bytes);
    return at + padded(bytes);
}

constexpr size_t control_bytes(size_t bytes) {
    return 4 * kWord + padded(bytes);
}

inline char* order(char* at) {
    return word(at, head(Kind::kOrder, {}));
}

inline char* after(char* at, unsigned rail, uint64_t position) {
    return word(word(at, head(Kind::kAfter, {}, rail)), position);
}

constexpr size_t kMaxShort = 3 * kWord;  // the size of the longest record that is no put and no control message

}  // namespace record

// Where a PE's regions lie in its own address space.
struct Regions {
    Region of[kRegions];

    // The place of the object that the first word of a record names; null when [offset, offset + bytes) is not wholly
    // inside of its region.
    char* find(uint64_t word, size_t bytes) const {
        const auto name = static_cast<size_t>(word >> record::kRegionShift & 3);
        const uint64_t offset = word & record::kOffsetMask;
        if (name >= kRegions || bytes > of[name].bytes || offset > of[name].bytes - bytes)
            return nullptr;
        return of[name].base + offset;
    }
};

// What `apply` calls for records that are more than stores.
class Applier {
  public:
    // The data of a get or the old value of an atomic goes back in a reply: it is copied.
    virtual void reply(const char* data, size_t bytes) = 0;
    // A kLarge record, at this place in the bytes being applied: its data goes to `to`.
    virtual void expect_large(size_t at, char* to, size_t bytes) = 0;
    virtual void control(const ControlKey& key, const char* data, size_t bytes) = 0;
    // A kOrder record: true when everything before the place is complete.
    virtual bool is_complete(size_t at) = 0;
    // A kAfter record: true when the stream on the rail is complete up to the position.
    virtual bool is_after(unsigned rail, uint64_t position) = 0;

  protected:
    ~Applier() = default;
};

struct Applied {
    size_t bytes = 0;             // of the records that were applied; less than all when a kOrder or kAfter must wait
    const char* wrong = nullptr;  // why the record behind those is refused; nothing of it has been done
};

// Applies records to this PE's memory in order, each checked as a whole before a byte is touched.
Applied apply(const char* records, size_t bytes, const Regions& regions, Applier& applier);

}  // namespace heddle::fabric
