// Records: what the writers write is what apply does to memory; what does not fit, ends early or is unknown is refused
// as a whole, behind everything that came before it.
#include "fabric/protocol/record.h"
#include "unit/fabric/records.h"

#include <gtest/gtest.h>
#include <cstring>
#include <random>
#include <tuple>

namespace heddle::fabric {
namespace {

constexpr size_t kHeapBytes = 64 * 1024, kDataBytes = 64, kMargin = 64;
constexpr const char* kShort = "it ends in the middle of a record";
constexpr const char* kOutside = "a record names memory outside of the region";
constexpr const char* kUnaligned = "an atomic is not aligned";
constexpr const char* kUnknown = "a record of an unknown kind";
constexpr const char* kEmpty = "a record of no bytes";

Address heap(uint64_t offset) {
    return {offset, RegionName::kHeap};
}
Address data(uint64_t offset) {
    return {offset, RegionName::kData};
}

// Two regions between margins that nothing may touch.
class Memory {
  public:
    Memory() : bytes_((3 * kMargin + kHeapBytes + kDataBytes) / 8) {
        for (size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = (i + 1) * 0x9e3779b97f4a7c15;
        char* const base = reinterpret_cast<char*>(bytes_.data());
        regions.of[0] = {base + kMargin, kHeapBytes};
        regions.of[1] = {base + 2 * kMargin + kHeapBytes, kDataBytes};
    }
    char* at(Address place) { return regions.of[static_cast<size_t>(place.region)].base + place.offset; }
    std::string bytes(Address place, size_t bytes) { return {at(place), bytes}; }
    template <class T>
    T value(Address place) {
        T value;
        memcpy(&value, at(place), sizeof value);
        return value;
    }
    template <class T>
    void set(Address place, T value) {
        memcpy(at(place), &value, sizeof value);
    }
    bool operator==(const Memory& other) const { return bytes_ == other.bytes_; }

    Regions regions;

  private:
    std::vector<uint64_t> bytes_;
};

// Remembers what apply asked for.
struct Asked final : Applier {
    std::vector<std::string> replies;
    std::vector<std::tuple<size_t, char*, size_t>> larges;
    std::vector<std::pair<ControlKey, std::string>> controls;
    std::vector<size_t> orders;
    std::vector<std::pair<unsigned, uint64_t>> afters;
    bool complete = true;

    void reply(const char* bytes, size_t count) override { replies.emplace_back(bytes, count); }
    void expect_large(size_t at, char* to, size_t bytes) override { larges.emplace_back(at, to, bytes); }
    void control(const ControlKey& key, const char* bytes, size_t count) override {
        controls.emplace_back(key, std::string(bytes, count));
    }
    bool is_complete(size_t at) override {
        orders.push_back(at);
        return complete;
    }
    bool is_after(unsigned rail, uint64_t position) override {
        afters.emplace_back(rail, position);
        return complete;
    }
    bool operator==(const Asked& other) const {
        return replies == other.replies && larges.size() == other.larges.size() && controls == other.controls &&
               afters == other.afters;
    }
};

// Applies [from, to) of records, from a buffer of exactly that size, so that a sanitizer sees what is read behind it.
Applied apply_part(const Records& records, size_t from, size_t to, Memory& memory, Asked& asked) {
    const std::vector<char> exact(records.data() + from, records.data() + to);
    return apply(exact.data(), exact.size(), memory.regions, asked);
}

void expect_applied(const Records& records, Memory& memory, Asked& asked) {
    const Applied applied = apply_part(records, 0, records.size(), memory, asked);
    EXPECT_STREQ(applied.wrong, nullptr);
    EXPECT_EQ(applied.bytes, records.size());
}

std::string pattern(size_t bytes) {
    std::string text(bytes, '\0');
    for (size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i * 7 + bytes);
    return text;
}

// Records whose last must be refused for this reason: those before it are applied, and it leaves no trace.
void expect_last_refused(Records& records, const char* reason, const std::string& what) {
    const size_t good = records.ends().size() > 1 ? records.ends()[records.ends().size() - 2] : 0;
    Memory memory, expected;
    Asked asked, expected_asked;
    EXPECT_STREQ(apply_part(records, 0, good, expected, expected_asked).wrong, nullptr) << what;
    const Applied applied = apply_part(records, 0, records.size(), memory, asked);
    EXPECT_STREQ(applied.wrong, reason) << what;
    EXPECT_EQ(applied.bytes, good) << what;
    EXPECT_TRUE(memory == expected) << what;
    EXPECT_TRUE(asked == expected_asked) << what;
}

// Something before what is refused.
Records begun() {
    Records records;
    records.put_word(data(8), 0x600d).get(data(8), 8).control({1, 2, 3, 4}, "before");
    return records;
}

TEST(Record, PutsOfEverySizeArriveAtAnyAddress) {
    std::vector<size_t> sizes;
    for (size_t bytes = 1; bytes <= record::kMaxSmallPut + 9; ++bytes) sizes.push_back(bytes);
    for (const size_t bytes : {4095, 4096, 4097, 32767, 32768}) sizes.push_back(bytes);
    for (const size_t bytes : sizes) {
        for (const size_t offset : {size_t{0}, size_t{3}, size_t{8}, kHeapBytes - bytes}) {
            Memory memory, expected;
            Asked asked;
            Records records;
            records.put(heap(offset), pattern(bytes));
            EXPECT_EQ(records.size(), record::put_bytes(bytes));
            expect_applied(records, memory, asked);
            memcpy(expected.at(heap(offset)), pattern(bytes).data(), bytes);
            ASSERT_TRUE(memory == expected) << bytes << " bytes at " << offset;
        }
    }
}

TEST(Record, WordsOfOneToEightBytesArriveAndTouchNothingElse) {
    const uint64_t bits = 0x8877665544332211;
    for (size_t bytes = 1; bytes <= 8; ++bytes) {
        for (const size_t offset : {size_t{16}, size_t{17}, size_t{20}, kDataBytes - bytes}) {
            Memory memory, expected;
            Asked asked;
            expect_applied(Records().put_word(data(offset), bits, bytes), memory, asked);
            memcpy(expected.at(data(offset)), &bits, bytes);
            EXPECT_TRUE(memory == expected) << bytes << " bytes at " << offset;
        }
    }
}

TEST(Record, NothingReachesBeyondARegion) {
    const auto refused = [](Records records, const std::string& what) { expect_last_refused(records, kOutside, what); };
    for (const Address end : {heap(kHeapBytes), data(kDataBytes)}) {
        for (const size_t bytes : {1, 2, 4, 7, 8, 16, 60}) {
            for (const size_t beyond : {1, 2, 8, 100}) {
                const Address to = {end.offset - bytes + beyond, end.region};
                const std::string what = std::to_string(bytes) + " bytes, beyond by " + std::to_string(beyond);
                refused(begun().put(to, pattern(bytes)), "put of " + what);
                refused(begun().large(to, bytes), "large of " + what);
                refused(begun().get(to, bytes), "get of " + what);
            }
        }
        for (const size_t bytes : {4, 8}) {
            refused(begun().atomic(end, HEDDLE_AMO_ADD, 1, 0, bytes, true), "atomic");
            refused(begun().atomic({end.offset - bytes / 2, end.region}, HEDDLE_AMO_ADD, 1, 0, bytes, true), "atomic");
        }
        refused(begun().signal(end, 1, false), "signal");
        refused(begun().put_word({record::kOffsetMask, end.region}, 1), "the last offset that there is");
        refused(begun().put_word({record::kOffsetMask - 7, end.region}, 1), "the last word that there is");
    }
}

TEST(Record, SizesThatWouldOverflowAreRefused) {
    std::vector<uint64_t> sizes = {kHeapBytes + 1, uint64_t{1} << 32, uint64_t{1} << 48, uint64_t{1} << 63};
    for (uint64_t less = 1; less <= 16; ++less) sizes.push_back(0 - less);
    for (const uint64_t bytes : sizes) {
        for (const uint64_t offset : {uint64_t{0}, uint64_t{8}, kHeapBytes - 1, kHeapBytes, record::kOffsetMask}) {
            const std::string what = std::to_string(bytes) + " bytes at " + std::to_string(offset);
            Records get = begun(), large = begun(), put = begun();
            expect_last_refused(get.get(heap(offset), bytes), kOutside, "get of " + what);
            expect_last_refused(large.large(heap(offset), bytes), kOutside, "large of " + what);
            // Its data is not there either.
            put.words({record::head(Kind::kLongPut, heap(offset)), bytes, 1, 2, 3});
            expect_last_refused(put, kShort, "put of " + what);
        }
    }
    for (const uint64_t bytes : {uint64_t{25}, uint64_t{record::kMaxControlBytes}}) {
        Records control = begun();
        control.words({record::head(Kind::kControl, {}), 7, 8, bytes, 1, 2, 3});
        expect_last_refused(control, kShort, "control message of " + std::to_string(bytes));
    }
}

TEST(Record, RecordsOfNoBytesAreRefusedButControlMessages) {
    for (Records records : {begun().words({record::head(Kind::kPut, heap(0), 0)}), begun().get(heap(0), 0),
                            begun().large(heap(0), 0), begun().words({record::head(Kind::kLongPut, heap(0)), 0})})
        expect_last_refused(records, kEmpty, "no bytes");
    Memory memory;
    Asked asked;
    const ControlKey highest = {UINT64_MAX, record::kOffsetMask, UINT32_MAX, UINT16_MAX, UINT64_MAX};
    expect_applied(Records().control(highest, "").control({}, "x"), memory, asked);
    ASSERT_EQ(asked.controls.size(), 2u);
    EXPECT_TRUE(asked.controls[0].first == highest);
    EXPECT_TRUE(asked.controls[0].second.empty());
    EXPECT_TRUE(asked.controls[1].first == ControlKey());
    EXPECT_EQ(asked.controls[1].second, "x");
}

TEST(Record, RegionsThatAreNotThereAreRefused) {
    for (const uint64_t region : {2, 3}) {
        const Address to = {0, static_cast<RegionName>(region)};
        for (Records records :
             {begun().put_word(to, 1), begun().put(to, pattern(600)), begun().large(to, 8), begun().get(to, 8),
              begun().atomic(to, HEDDLE_AMO_SET, 1, 0, 8, false), begun().signal(to, 1, false)})
            expect_last_refused(records, kOutside, "region " + std::to_string(region));
    }
}

TEST(Record, GetsAskForWhatIsThere) {
    Memory memory;
    Asked asked;
    expect_applied(Records().get(heap(0), kHeapBytes).get(heap(kHeapBytes - 1), 1).get(data(3), 9), memory, asked);
    ASSERT_EQ(asked.replies.size(), 3u);
    EXPECT_EQ(asked.replies[0], memory.bytes(heap(0), kHeapBytes));
    EXPECT_EQ(asked.replies[1], memory.bytes(heap(kHeapBytes - 1), 1));
    EXPECT_EQ(asked.replies[2], memory.bytes(data(3), 9));
}

TEST(Record, LargeDataIsExpectedWithThePlaceOfItsRecord) {
    Memory memory;
    Asked asked;
    const Records records = Records().put(heap(0), "abc").large(heap(5), kHeapBytes - 5).large(data(0), 1);
    expect_applied(records, memory, asked);
    ASSERT_EQ(asked.larges.size(), 2u);
    EXPECT_EQ(asked.larges[0], std::make_tuple(records.ends()[0], memory.at(heap(5)), kHeapBytes - 5));
    EXPECT_EQ(asked.larges[1], std::make_tuple(records.ends()[1], memory.at(data(0)), size_t{1}));
}

template <class T>
T result_of(heddle_amo_op op, T old, T operand, T compare) {
    switch (op) {
        case HEDDLE_AMO_SET:
        case HEDDLE_AMO_SWAP:
            return operand;
        case HEDDLE_AMO_COMPARE_SWAP:
            return old == compare ? operand : old;
        case HEDDLE_AMO_ADD:
            return old + operand;
        case HEDDLE_AMO_AND:
            return old & operand;
        case HEDDLE_AMO_OR:
            return old | operand;
        case HEDDLE_AMO_XOR:
            return old ^ operand;
        default:
            return old;
    }
}

template <class T>
void test_atomics() {
    const T old = static_cast<T>(0xf0f0f0f0f0f0f0f1), operand = static_cast<T>(0x0ff00ff00ff00fff);
    for (const Address to : {heap(0), heap(kHeapBytes - sizeof(T)), data(sizeof(T))}) {
        for (int op = HEDDLE_AMO_FETCH; op <= HEDDLE_AMO_XOR; ++op) {
            for (const T compare : {old, static_cast<T>(old + 1)}) {
                for (const bool fetch : {false, true}) {
                    Memory memory, expected;
                    Asked asked;
                    const auto which = static_cast<heddle_amo_op>(op);
                    memory.set(to, old);
                    expect_applied(Records().atomic(to, which, operand, compare, sizeof(T), fetch), memory, asked);
                    expected.set(to, result_of(which, old, operand, compare));
                    EXPECT_TRUE(memory == expected) << "operation " << op << " at " << to.offset;
                    ASSERT_EQ(asked.replies.size(), fetch ? 1u : 0u);
                    // A set has no old value to give.
                    if (fetch && op != HEDDLE_AMO_SET) {
                        ASSERT_EQ(asked.replies[0].size(), record::kWord);
                        EXPECT_EQ(memcmp(asked.replies[0].data(), &old, sizeof old), 0) << "operation " << op;
                    }
                }
            }
        }
    }
}

TEST(Record, AtomicsDoWhatTheirNamesSay) {
    test_atomics<uint32_t>();
    test_atomics<uint64_t>();
}

TEST(Record, UnalignedAtomicsAndSignalsAreRefused) {
    for (size_t offset = 1; offset < 8; ++offset) {
        Records wide = begun(), signal = begun();
        expect_last_refused(wide.atomic(heap(offset), HEDDLE_AMO_ADD, 1, 0, 8, true), kUnaligned, "8 bytes");
        expect_last_refused(signal.signal(heap(offset), 1, true), kUnaligned, "signal");
        Records narrow = begun();
        narrow.atomic(heap(offset), HEDDLE_AMO_ADD, 1, 0, 4, true);
        if (offset != 4) {
            expect_last_refused(narrow, kUnaligned, "4 bytes");
        } else {
            Memory memory;
            Asked asked;
            expect_applied(narrow, memory, asked);
        }
    }
}

TEST(Record, SignalsAreSetAndAdded) {
    Memory memory, expected;
    Asked asked;
    expect_applied(Records().signal(heap(8), 40, false).signal(heap(8), 2, true).signal(data(kDataBytes - 8), 9, false),
                   memory, asked);
    expected.set(heap(8), uint64_t{42});
    expected.set(data(kDataBytes - 8), uint64_t{9});
    EXPECT_TRUE(memory == expected);
}

TEST(Record, UnknownKindsAndUnknownBitsAreRefused) {
    for (uint64_t kind = 9; kind < 16; ++kind) {
        Records records = begun();
        expect_last_refused(records.words({record::head(static_cast<Kind>(kind), heap(0), 8), 8, 8, 8}), kUnknown,
                            "kind " + std::to_string(kind));
    }
    for (size_t small = 32; small < 1024; ++small) {
        Records records = begun();
        expect_last_refused(records.words({record::head(Kind::kAtomic, heap(0), small), 1, 1}), kUnknown,
                            "atomic " + std::to_string(small));
    }
    for (size_t small = 2; small < 1024; ++small) {
        Records records = begun();
        expect_last_refused(records.words({record::head(Kind::kSignal, heap(0), small), 1}), kUnknown,
                            "signal " + std::to_string(small));
    }
}

Records one_of_each() {
    Records records;
    records.put_word(heap(0), 1).put(heap(100), pattern(13)).put(heap(200), pattern(600)).large(heap(2000), 50);
    records.get(heap(96), 30).atomic(heap(8), HEDDLE_AMO_ADD, 5, 0, 8, true);
    records.atomic(heap(16), HEDDLE_AMO_COMPARE_SWAP, 5, 6, 4, true).atomic(heap(24), HEDDLE_AMO_SET, 5, 0, 4, false);
    records.signal(data(0), 7, true)
        .control({77, 5, 3, 1}, "letter")
        .control({78, 5, 4, 0}, "")
        .order()
        .after(1, 8)
        .put_word(data(8), 2, 3);
    return records;
}

TEST(Record, WhatEndsEarlyIsRefusedInEveryPlace) {
    const Records records = one_of_each();
    size_t whole = 0, next = 0;  // bytes and number of the records that are whole
    for (size_t cut = 0; cut <= records.size(); ++cut) {
        if (next < records.ends().size() && records.ends()[next] == cut) {
            whole = cut;
            ++next;
        }
        Memory memory, expected;
        Asked asked, expected_asked;
        const Applied applied = apply_part(records, 0, cut, memory, asked);
        EXPECT_EQ(applied.bytes, whole) << cut;
        EXPECT_STREQ(applied.wrong, cut == whole ? nullptr : kShort) << cut;
        apply_part(records, 0, whole, expected, expected_asked);
        EXPECT_TRUE(memory == expected) << cut;
        EXPECT_TRUE(asked == expected_asked) << cut;
    }
    EXPECT_EQ(next, records.ends().size());
}

TEST(Record, AnOrderStopsUntilAllBeforeIsComplete) {
    const Records records = Records().put_word(heap(0), 1).order().put_word(heap(8), 2).order().put_word(heap(16), 3);
    Memory memory, expected;
    Asked asked;
    asked.complete = false;
    const size_t first = records.ends()[0], second = records.ends()[2] - records.ends()[0];
    Applied applied = apply_part(records, 0, records.size(), memory, asked);
    EXPECT_STREQ(applied.wrong, nullptr);
    EXPECT_EQ(applied.bytes, first);
    EXPECT_EQ(asked.orders, std::vector<size_t>{first});
    expected.set(heap(0), uint64_t{1});
    EXPECT_TRUE(memory == expected);

    // From there on, when the first may pass and the second may not.
    struct Once final : Applier {
        void reply(const char*, size_t) override {}
        void expect_large(size_t, char*, size_t) override {}
        void control(const ControlKey&, const char*, size_t) override {}
        bool is_complete(size_t at) override { return at == 0; }
        bool is_after(unsigned, uint64_t) override { return false; }
    } once;
    applied = apply(records.data() + first, records.size() - first, memory.regions, once);
    EXPECT_STREQ(applied.wrong, nullptr);
    EXPECT_EQ(applied.bytes, second);
    expected.set(heap(8), uint64_t{2});
    EXPECT_TRUE(memory == expected);

    asked.complete = true;
    applied = apply_part(records, first + second, records.size(), memory, asked);
    EXPECT_EQ(first + second + applied.bytes, records.size());
    expected.set(heap(16), uint64_t{3});
    EXPECT_TRUE(memory == expected);
}

TEST(Record, AnAfterStopsUntilTheOtherRailIsThere) {
    const Records records = Records().put_word(heap(0), 1).after(5, 1234567).put_word(heap(8), 2);
    Memory memory, expected;
    Asked asked;
    asked.complete = false;
    Applied applied = apply_part(records, 0, records.size(), memory, asked);
    EXPECT_STREQ(applied.wrong, nullptr);
    EXPECT_EQ(applied.bytes, records.ends()[0]);
    const std::pair<unsigned, uint64_t> named{5, 1234567};
    EXPECT_EQ(asked.afters, std::vector{named});
    expected.set(heap(0), uint64_t{1});
    EXPECT_TRUE(memory == expected);

    asked.complete = true;
    applied = apply_part(records, records.ends()[0], records.size(), memory, asked);
    EXPECT_EQ(records.ends()[0] + applied.bytes, records.size());
    expected.set(heap(8), uint64_t{2});
    EXPECT_TRUE(memory == expected);
}

TEST(Record, WhatIsAppliedFromAnyAddressIsTheSame) {
    const Records records = one_of_each();
    for (size_t shift = 0; shift < 8; ++shift) {
        Memory memory, expected;
        Asked asked, expected_asked;
        apply_part(records, 0, records.size(), expected, expected_asked);
        std::vector<char> shifted(shift + records.size());
        memcpy(shifted.data() + shift, records.data(), records.size());
        const Applied applied = apply(shifted.data() + shift, records.size(), memory.regions, asked);
        EXPECT_STREQ(applied.wrong, nullptr);
        EXPECT_TRUE(memory == expected && asked == expected_asked) << shift;
    }
}

// Random words, most of them nearly right: the margins stay as they are.
TEST(Record, RandomRecordsTouchNothingOutside) {
    const uint32_t seed = std::random_device{}();
    printf("seed %u\n", seed);
    std::mt19937_64 random(seed);
    Memory memory;
    const Memory before;
    const auto is_untouched = [&](const char* from) {
        return memcmp(from, before.regions.of[0].base + (from - memory.regions.of[0].base), kMargin) == 0;
    };
    size_t applied = 0;
    for (int round = 0; round < 20000; ++round) {
        std::vector<uint64_t> words(random() % 12 + 1);
        for (uint64_t& word : words) {
            const auto kind = static_cast<Kind>(random() % 9);
            const auto region = static_cast<RegionName>(random() % 16 == 0 ? random() % 4 : random() % 2);
            const uint64_t end = region == RegionName::kHeap ? kHeapBytes : kDataBytes;
            word = random() % 3 == 0 ? random() % (kHeapBytes * 2)
                                     : record::head(kind, {(end - random() % 64) & record::kOffsetMask, region},
                                                    random() % (random() % 8 == 0 ? 1024 : 32));
        }
        Asked asked;
        asked.complete = random() % 4 != 0;
        const Records records = Records().words(words);
        applied += apply_part(records, 0, records.size(), memory, asked).bytes;
        for (const std::string& reply : asked.replies) ASSERT_LE(reply.size(), kHeapBytes);
        for (const auto& [at, to, bytes] : asked.larges) {
            const Region& region = memory.regions.of[to >= memory.regions.of[1].base ? 1 : 0];
            ASSERT_TRUE(to >= region.base && bytes <= region.bytes &&
                        static_cast<size_t>(to - region.base) <= region.bytes - bytes);
        }
        ASSERT_TRUE(is_untouched(memory.regions.of[0].base - kMargin) &&
                    is_untouched(memory.regions.of[0].base + kHeapBytes) &&
                    is_untouched(memory.regions.of[1].base + kDataBytes))
            << "seed " << seed << ", round " << round;
    }
    EXPECT_GT(applied, 1000u);
}

}  // namespace
}  // namespace heddle::fabric
