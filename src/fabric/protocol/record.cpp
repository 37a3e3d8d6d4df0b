#include "fabric/protocol/record.h"

#include "fabric/protocol/untorn.h"

#include <heddle/hot_path.h>

namespace heddle::fabric {

// What inlined code writes (heddle_put_far) is what put_word writes.
static_assert(HEDDLE_PUT_RECORD_BYTES == record::put_bytes(record::kWord));
static_assert(HEDDLE_PUT_RECORD(uint64_t{40}, uint64_t{4}) ==
              record::head(Kind::kPut, {.offset = 40, .region = RegionName::kHeap}, 4));

namespace {

using namespace record;

// Reads the words of one record; runs out instead of reading past the end.
class Reader {
  public:
    Reader(const char* at, const char* end) : at_(at), end_(end) {}

    bool word(uint64_t* value) {
        if (left() < kWord)
            return false;
        memcpy(value, at_, kWord);
        at_ += kWord;
        return true;
    }
    // The next bytes, which are padded; null when there are not as many.
    const char* data(uint64_t bytes) {
        if (bytes > left() || padded(bytes) > left())
            return nullptr;
        const char* data = at_;
        at_ += padded(bytes);
        return data;
    }
    const char* at() const { return at_; }

  private:
    size_t left() const { return static_cast<size_t>(end_ - at_); }

    const char* at_;
    const char* const end_;
};

constexpr const char* kShort = "it ends in the middle of a record";
constexpr const char* kOutside = "a record names memory outside of the region";
constexpr const char* kUnaligned = "an atomic is not aligned";
constexpr const char* kUnknown = "a record of an unknown kind";
constexpr const char* kEmpty = "a record of no bytes";

const char* apply_put(uint64_t head, uint64_t bytes, Reader& reader, const Regions& regions) {
    if (bytes == 0)
        return kEmpty;
    const char* data = reader.data(bytes);
    if (!data)
        return kShort;
    char* to = regions.find(head, bytes);
    if (!to)
        return kOutside;
    store_untorn(to, data, bytes);
    return nullptr;
}

// The most frequent record, an aligned word: true when it has been applied, and *at moved. What is not as it should be
// is left to the rest.
constexpr uint64_t kWordPut = record::head(Kind::kPut, {}, kWord) >> kKindShift;

inline bool apply_word_put(uint64_t head, const char* end, const Regions& regions, const char** at) {
    char* const to = regions.find(head, kWord);
    if (static_cast<size_t>(end - *at) < 2 * kWord || !to || !is_aligned(to, kWord))
        return false;
    store_value<uint64_t>(to, *at + kWord);
    *at += 2 * kWord;
    return true;
}

const char* apply_atomic(uint64_t head, Reader& reader, const Regions& regions, Applier& applier) {
    const auto small = static_cast<unsigned>(head >> kSmallShift);
    const auto op = static_cast<heddle_amo_op>(small & kOperationMask);
    const size_t bytes = small & kWide ? 8 : 4;
    uint64_t operand, compare = 0;
    if (!reader.word(&operand) || (op == HEDDLE_AMO_COMPARE_SWAP && !reader.word(&compare)))
        return kShort;
    if (small >= 2 * kFetch)
        return kUnknown;
    char* to = regions.find(head, bytes);
    if (!to)
        return kOutside;
    if (!is_aligned(to, bytes))
        return kUnaligned;
    const uint64_t old = heddle_amo_on(op, to, operand, compare, bytes);
    if (small & kFetch)
        applier.reply(reinterpret_cast<const char*>(&old), sizeof old);
    return nullptr;
}

const char* apply_signal(uint64_t head, Reader& reader, const Regions& regions) {
    uint64_t value;
    if (!reader.word(&value))
        return kShort;
    auto* signal = reinterpret_cast<uint64_t*>(regions.find(head, sizeof value));
    if (!signal)
        return kOutside;
    if (!is_aligned(reinterpret_cast<char*>(signal), sizeof value))
        return kUnaligned;
    // Release: pairs with operations::load.
    switch (head >> kSmallShift) {
        case 0:
            __atomic_store_n(signal, value, __ATOMIC_RELEASE);
            return nullptr;
        case 1:
            __atomic_fetch_add(signal, value, __ATOMIC_RELEASE);
            return nullptr;
        default:
            return kUnknown;
    }
}

const char* apply_control(uint64_t head, Reader& reader, Applier& applier) {
    uint64_t team, call, rest;
    if (!reader.word(&team) || !reader.word(&call) || !reader.word(&rest))
        return kShort;
    const size_t bytes = rest & kMaxControlBytes;
    const char* data = reader.data(bytes);
    if (!data)
        return kShort;
    applier.control(
        {team, head & kOffsetMask, static_cast<uint32_t>(rest >> 32), static_cast<uint16_t>(rest >> 16), call}, data,
        bytes);
    return nullptr;
}

// Gets and large data: what they name must be there; the applier does the rest.
const char* check_extent(uint64_t head, Reader& reader, const Regions& regions, char** place, uint64_t* bytes) {
    if (!reader.word(bytes))
        return kShort;
    if (*bytes == 0)
        return kEmpty;
    *place = regions.find(head, *bytes);
    return *place ? nullptr : kOutside;
}

}  // namespace

// A release fence comes before each record: whoever sees the record's store with acquire sees those of earlier records.
// The record may be behind a fence, which leaves nothing in the stream behind small data (docs/decisions/0031).
// Cost: no instruction on x86-64.
Applied apply(const char* records, size_t bytes, const Regions& regions, Applier& applier) {
    const char* const end = records + bytes;
    const char* at = records;
    while (at != end) {
        Reader reader(at, end);
        const auto taken = static_cast<size_t>(at - records);
        const char* wrong = nullptr;
        uint64_t head, extent;
        char* place;
        if (!reader.word(&head))
            return {taken, kShort};
        HEDDLE_FENCE(__ATOMIC_RELEASE);  // pairs with operations::load
        if (head >> kKindShift == kWordPut && apply_word_put(head, end, regions, &at))
            continue;
        switch (static_cast<Kind>(head >> kKindShift & 15)) {
            case Kind::kPut:
                wrong = apply_put(head, head >> kSmallShift, reader, regions);
                break;
            case Kind::kLongPut:
                wrong = reader.word(&extent) ? apply_put(head, extent, reader, regions) : kShort;
                break;
            case Kind::kLarge:
                wrong = check_extent(head, reader, regions, &place, &extent);
                if (!wrong)
                    applier.expect_large(taken, place, extent);
                break;
            case Kind::kGet:
                wrong = check_extent(head, reader, regions, &place, &extent);
                if (!wrong)
                    applier.reply(place, extent);
                break;
            case Kind::kAtomic:
                wrong = apply_atomic(head, reader, regions, applier);
                break;
            case Kind::kSignal:
                wrong = apply_signal(head, reader, regions);
                break;
            case Kind::kControl:
                wrong = apply_control(head, reader, applier);
                break;
            case Kind::kOrder:
                if (!applier.is_complete(taken))
                    return {taken, nullptr};
                break;
            case Kind::kAfter:
                if (!reader.word(&extent))
                    wrong = kShort;
                else if (!applier.is_after(static_cast<unsigned>(head >> kSmallShift), extent))
                    return {taken, nullptr};
                break;
            default:
                wrong = kUnknown;
        }
        if (wrong)
            return {taken, wrong};
        at = reader.at();
    }
    return {bytes, nullptr};
}

}  // namespace heddle::fabric
