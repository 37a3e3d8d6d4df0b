// Docs/decisions/0006, proved: programs take heddle_abi_1 for a constant, so that code may go on with any mix of words
// from before and after init. Whatever the mix, the one comparison of heddle_on_node lets an operation through to its
// right place or sends it to the slow path: for every state of a PE's life, wherever heap and static data lie in the
// address space, for every class of address and of PE number.
#include "memory/node_memory.h"
#include "memory/peers.h"

#include <gtest/gtest.h>
#include <heddle/hot_path.h>
#include <unistd.h>
#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <set>
#include <vector>

namespace heddle::memory {
namespace {

constexpr uintptr_t bit(int number) {
    return uintptr_t{1} << number;
}

// Every scene of this many: all take a second of optimized code.
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
constexpr size_t kSceneStep = 1;
#else
constexpr size_t kSceneStep = 16;
#endif

constexpr int kMaxPes = 4096;
constexpr uintptr_t kLowest = 0x10000;  // vm.mmap_min_addr

// The words as they are before init: those of the library, not a copy of what they should be.
const struct heddle_abi_1 kBefore = heddle_abi_1;

// One end of user addresses: x86-64 with 4 and 5 levels of tables, aarch64 with 48 and 52 bits.
const uintptr_t kEnds[] = {bit(47), bit(48), bit(52), bit(56)};

struct Sizes {
    int n_pes;
    size_t heap_bytes;
    size_t data_bytes;
};

// A PE as it sees its job: where the node's memory and its own static data are.
struct Scene {
    Layout layout;
    int own;  // its number and slot
    uintptr_t base;
    uintptr_t data;
    size_t data_bytes;

    uintptr_t heap_of(int pe) const { return base + layout.slots_offset + layout.stride * static_cast<size_t>(pe); }
    uintptr_t data_of(int pe) const { return pe == own ? data : heap_of(pe) + layout.data_offset; }
    size_t data_size_of(int pe) const { return data_bytes - (pe == own && data_bytes > 0 ? HEDDLE_SHORT_BYTES : 0); }
};

// What a program may find of a PE's life. `open`: the entries of its table hold the PEs.
struct State {
    const char* name;
    bool initialized;
    bool open;
};
const State kStates[] = {
    {"before init", false, false}, {"running", true, true},     {"checked run", true, false},
    {"finalized", true, false},    {"second init", true, true}, {"forked child", true, false},
};

// The words that code goes on with: each is from before init, or as it is.
struct Mix {
    bool fresh_heap_base;
    bool fresh_data_base;
    const char* table_name;
    const heddle_peer* peers;
};

class HotPathModel : public testing::Test {
  protected:
    void SetUp() override {
        own_table_ = make_peer_table(kMaxPes);
        no_table_ = make_peer_table(0);
        ASSERT_NE(own_table_, nullptr);
        ASSERT_NE(no_table_, nullptr);
        ASSERT_NE(kBefore.default_ctx.peers, nullptr);
    }
    void TearDown() override { heddle_abi_1 = kBefore; }

    static heddle_peer entry(const Scene& scene, int pe) {
        return {reinterpret_cast<char*>(scene.heap_of(pe)), scene.layout.heap_bytes,
                reinterpret_cast<char*>(scene.data_of(pe)), scene.data_size_of(pe)};
    }

    void enter(const Scene& scene, const State& state) {
        for (int pe = 0; pe < kMaxPes; ++pe)
            own_table_[pe] = state.open && pe < scene.layout.n_slots ? entry(scene, pe) : heddle_peer{};
    }

    std::vector<Mix> mixes(const State& state) const {
        std::vector<Mix> all;
        for (const bool heap : {false, true})
            for (const bool data : {false, true}) {
                if (!state.initialized && (heap || data))
                    continue;
                all.push_back({heap, data, "of before init", kBefore.default_ctx.peers});
                if (!state.initialized)
                    continue;
                all.push_back({heap, data, "of the PE", own_table_});
                all.push_back({heap, data, "of a destroyed context", no_table_});
            }
        return all;
    }

    // Where the operation must go: 0 for the slow path.
    uintptr_t right_place(const Scene& scene, const State& state, const Mix& mix, uintptr_t address, int pe) const {
        if (mix.peers != own_table_ || !state.open || pe < 0 || pe >= scene.layout.n_slots)
            return 0;
        if (address - scene.heap_of(scene.own) < scene.layout.heap_bytes)
            return mix.fresh_heap_base ? scene.heap_of(pe) + (address - scene.heap_of(scene.own)) : 0;
        if (address - scene.data < scene.data_size_of(pe))
            return mix.fresh_data_base ? scene.data_of(pe) + (address - scene.data) : 0;
        return 0;
    }

    // Compares what heddle_on_node does with what is right; the number of operations that went wrong.
    void check(const Scene& scene, const State& state, const std::vector<uintptr_t>& addresses,
               const std::vector<int>& pes) {
        for (const Mix& mix : mixes(state)) {
            heddle_abi_1.heap_base = mix.fresh_heap_base ? scene.heap_of(scene.own) : kBefore.heap_base;
            heddle_abi_1.data_base = mix.fresh_data_base ? scene.data : kBefore.data_base;
            const heddle_ctx context = {mix.peers};
            for (const int pe : pes)
                for (const uintptr_t address : addresses) {
                    uintptr_t offset = 0;
                    size_t region = 0;
                    const char* base =
                        heddle_on_node(&context, reinterpret_cast<const void*>(address), pe, &offset, &region);
                    const uintptr_t place = base ? reinterpret_cast<uintptr_t>(base) + offset : 0;
                    ++asked_;
                    through_ += base != nullptr;
                    if (place != right_place(scene, state, mix, address, pe))
                        report(scene, state, mix, address, pe, place);
                }
        }
    }

    void report(const Scene& scene, const State& state, const Mix& mix, uintptr_t address, int pe, uintptr_t place) {
        if (wrong_++ > 0)
            return;
        ADD_FAILURE() << state.name << ", heap base " << (mix.fresh_heap_base ? "fresh" : "stale") << ", data base "
                      << (mix.fresh_data_base ? "fresh" : "stale") << ", table " << mix.table_name << std::hex
                      << ": address 0x" << address << " of PE " << std::dec << pe << " of " << scene.layout.n_slots
                      << std::hex << " leads to 0x" << place << ", right is 0x"
                      << right_place(scene, state, mix, address, pe) << "; own heap at 0x" << scene.heap_of(scene.own)
                      << ", 0x" << scene.layout.heap_bytes << " bytes, own data at 0x" << scene.data << ", 0x"
                      << scene.data_bytes << " bytes";
    }

    heddle_peer* own_table_ = nullptr;
    const heddle_peer* no_table_ = nullptr;
    uint64_t asked_ = 0, through_ = 0, wrong_ = 0;
};

bool overlap(uintptr_t a, size_t a_bytes, uintptr_t b, size_t b_bytes) {
    return a < b + b_bytes && b < a + a_bytes;
}

// Where `bytes` may lie: low, where linkers put programs with fixed addresses and others, and below each end. A PIE's
// and a mapping's usual places among them.
std::vector<uintptr_t> places(size_t bytes) {
    std::vector<uintptr_t> all;
    for (const uintptr_t at : {uintptr_t{1} << 21, uintptr_t{0x400000}, bit(31) - bit(21), bit(32), bit(38), bit(46),
                               uintptr_t{0x555555400000}, uintptr_t{0x7f0000000000}, uintptr_t{0xaaaaaaa00000}})
        all.push_back(at);
    for (const uintptr_t end : kEnds)
        if (bytes < end - kLowest)
            all.push_back((end - bytes) & ~(bit(21) - 1));
    return all;
}

// Every pair of places for the node's memory and the static data that exists in one address space.
std::vector<Scene> scenes(const Sizes& sizes) {
    const Layout layout = plan(sizes.n_pes, 4096, 1 << 20, sizes.heap_bytes, sizes.data_bytes, 4096);
    std::vector<Scene> all;
    if (layout.total_bytes == 0)
        return all;
    const size_t page = 4096;
    const size_t data_bytes = sizes.data_bytes;
    for (const uintptr_t base : places(layout.total_bytes)) {
        std::vector<uintptr_t> of_data = places(data_bytes);
        of_data.insert(of_data.end(), {kLowest, 0x404000, base + layout.total_bytes});
        if (base > data_bytes + page)
            of_data.push_back(base - data_bytes);
        for (const uintptr_t data : of_data)
            for (const uintptr_t end : kEnds)
                if (base + layout.total_bytes <= end && data + data_bytes <= end &&
                    !overlap(base, layout.total_bytes, data, data_bytes)) {
                    for (const int own : std::set<int>{0, sizes.n_pes - 1})
                        all.push_back({layout, own, base, data_bytes > 0 ? data : 0, data_bytes});
                    break;
                }
    }
    return all;
}

// The ends and the middle of all regions, what lies beside them, the ends of all powers of two; with tags, which are
// not symmetric: in the top byte (aarch64), in bits 57 to 62 (x86-64).
std::vector<uintptr_t> addresses(const Scene& scene) {
    std::set<uintptr_t> plain = {0, 1, kLowest};
    const auto add_region = [&plain](uintptr_t begin, size_t bytes) {
        const uintptr_t end = begin + bytes;
        for (const uintptr_t at : {begin - 1, begin, begin + 8, begin + bytes / 2, end - 17, end - 16, end - 8, end - 1,
                                   end, end + HEDDLE_GAP_BYTES - 1, end + HEDDLE_GAP_BYTES})
            plain.insert(at);
    };
    for (const int pe : {0, scene.own, scene.layout.n_slots - 1}) {
        add_region(scene.heap_of(pe), scene.layout.heap_bytes);
        add_region(scene.heap_of(pe) + scene.layout.data_offset, scene.data_bytes);
    }
    add_region(scene.data, scene.data_bytes);
    for (int number = 12; number <= 56; ++number) {
        plain.insert(bit(number) - 8);
        if (number < 56)
            plain.insert(bit(number));
    }
    std::vector<uintptr_t> all;
    for (const uintptr_t at : plain) {
        if (at >= bit(56))
            continue;  // 0 - 1 and the like
        all.push_back(at);
        for (const uintptr_t tag : {uintptr_t{1}, uintptr_t{0x80}, uintptr_t{0x81}, uintptr_t{0xff}})
            if (at < bit(52))
                all.push_back(at | tag << 56);
        for (const uintptr_t tag : {uintptr_t{1}, uintptr_t{0x3f}}) all.push_back(at | tag << 57);
    }
    return all;
}

// Itself, others, and numbers that are no PE's; all are asked below.
std::vector<int> some_pes(int n_pes, int own) {
    const std::set<int> all = {-(1 << kPlausibleBits), -1, 0, own, n_pes / 2, n_pes - 1, n_pes};
    return {all.begin(), all.end()};
}

TEST_F(HotPathModel, EveryMixOfWordsEveryPlaceEveryAddress) {
    size_t n_scenes = 0;
    for (const int n_pes : {1, 2, kMaxPes})
        for (const size_t heap : {size_t{0}, bit(22), bit(30), bit(45)})
            for (const size_t data : {size_t{0}, size_t{0x5000}, bit(33)})
                for (const Scene& scene : scenes({n_pes, heap, data})) {
                    if (++n_scenes % kSceneStep != 0)
                        continue;
                    const std::vector<uintptr_t> all = addresses(scene);
                    const std::vector<int> pes = some_pes(n_pes, scene.own);
                    // The life of a PE is a matter of its table, open or not; its names matter below.
                    for (const State& state : {kStates[0], kStates[1], kStates[2]}) {
                        if (n_pes == kMaxPes && n_scenes % 8 != 0)
                            continue;  // its table takes longest to fill
                        enter(scene, state);
                        check(scene, state, all, pes);
                    }
                }
    printf("%zu scenes, %llu operations, %llu of them inlined\n", n_scenes, static_cast<unsigned long long>(asked_),
           static_cast<unsigned long long>(through_));
    EXPECT_GT(n_scenes, 2000u);
    EXPECT_GT(through_, 10000u) << "the model lets nothing through";
    EXPECT_EQ(wrong_, 0u);
}

TEST_F(HotPathModel, EveryStateEveryPeOfALargeJob) {
    const Layout layout = plan(kMaxPes, 4096, 1 << 20, bit(30), bit(23), 4096);
    const Scene fixed = {layout, 3, 0x7f0000000000 - (layout.total_bytes & ~(bit(21) - 1)), 0x404000, bit(23)};
    std::vector<int> pes;
    for (int pe = -kMaxPes - 1; pe <= 2 * kMaxPes; ++pe) pes.push_back(pe);
    const std::vector<uintptr_t> few = {fixed.data,       fixed.data + 4096,    fixed.heap_of(3) + 8,
                                        fixed.heap_of(4), fixed.data + bit(23), 0};
    for (const State& state : kStates) {
        enter(fixed, state);
        check(fixed, state, few, pes);
    }
    EXPECT_EQ(wrong_, 0u);
}

// Puts of inlined code to another node: the thread has streams to the PEs 1 and 2 of 4, PE 0 is its own.
class FarPuts : public HotPathModel {
  protected:
    void TearDown() override {
        heddle_streams_2 = {};
        HotPathModel::TearDown();
    }
    // Whether the put became a record, which must be right then; nothing else may have happened.
    bool is_put(const heddle_ctx* ctx, uintptr_t address, size_t bytes, int pe, bool is_nbi, uintptr_t heap,
                heddle_request* const* req = nullptr) {
        uint64_t ring[6] = {};
        constexpr uint64_t kPosition = 64, kBits = 0x1122334455667788;
        for (heddle_stream& stream : streams_)
            stream = {reinterpret_cast<uintptr_t>(ring + 2) - kPosition,
                      kPosition,
                      kPosition + room_,
                      0,
                      claiming_,
                      &claimed_};
        const heddle_stream* const put =
            heddle_put_far(ctx, reinterpret_cast<const void*>(address), &kBits, bytes, pe, is_nbi, req);
        const bool done = put != nullptr;
        const uint64_t expected[6] = {0, 0, done ? (address - heap) | bytes << 54 : 0,
                                      done ? kBits & (~uint64_t{0} >> (64 - 8 * bytes)) : 0};
        EXPECT_TRUE(std::equal(ring, ring + 6, expected)) << std::hex << address << " of PE " << pe;
        for (const heddle_stream& stream : streams_) EXPECT_EQ(stream.published, kPosition + (&stream == put ? 16 : 0));
        EXPECT_TRUE(!done || put == to_[pe]);
        EXPECT_EQ(claimed_, done && req ? kPosition + 16 : 7);
        claimed_ = 7;
        return done;
    }

    const heddle_ctx ctx_ = {nullptr}, other_ = {nullptr};
    heddle_stream streams_[2] = {};
    heddle_stream* to_[4] = {nullptr, &streams_[0], &streams_[1], nullptr};
    heddle_stream* none_[4] = {};
    uint64_t room_ = 17;  // for one record, with which the message is not full
    heddle_request* claiming_ = HEDDLE_NO_REQUEST;
    uint64_t claimed_ = 7;
};

TEST_F(FarPuts, GoToTheRightPlaceOrToTheLibrary) {
    size_t n_scenes = 0, n_put = 0;
    for (const size_t heap : {size_t{0}, size_t{4}, bit(22), bit(45)})
        for (const Scene& scene : scenes({2, heap, 0x5000})) {
            if (++n_scenes % 16 != 0)
                continue;
            const size_t words = heap < 8 ? 0 : heap - 7;
            const uintptr_t base = scene.heap_of(scene.own);
            heddle_streams_2 = {&ctx_, heddle_streams_epoch_1, 4, to_, base, words, to_};
            for (const uintptr_t address : addresses(scene))
                for (const int pe : {INT_MIN, -1, 0, 1, 2, 3, 4, INT_MAX}) {
                    const bool right = (pe == 1 || pe == 2) && address - base < words;
                    n_put += right;
                    ASSERT_EQ(is_put(&ctx_, address, size_t{1} << (pe & 3), pe, pe & 1, base), right)
                        << std::hex << address << " of PE " << pe << ", heap at " << base << " of " << heap;
                }
        }
    EXPECT_GT(n_put, 100u);
}

TEST_F(FarPuts, AreLeftToTheLibraryWhereItMustLook) {
    const uintptr_t base = 0x7f0000000000;
    const auto is_put_by = [&](const heddle_ctx* ctx, bool is_nbi) {
        return is_put(ctx, base + 8, 8, 1, is_nbi, base);
    };
    EXPECT_FALSE(is_put_by(&ctx_, false)) << "by a thread that has put nothing";
    heddle_streams_2 = {&ctx_, heddle_streams_epoch_1, 4, to_, base, 4096, to_};
    EXPECT_TRUE(is_put_by(&ctx_, false) && is_put_by(&ctx_, true));
    EXPECT_FALSE(is_put_by(&other_, false)) << "another context than the last";
    EXPECT_FALSE(is_put_by(nullptr, false)) << "SHMEM_CTX_INVALID";
    room_ = 16;
    EXPECT_FALSE(is_put_by(&ctx_, false)) << "the record fills the message";
    room_ = 17;
    heddle_streams_2.nbi_to = none_;
    EXPECT_TRUE(is_put_by(&ctx_, false));
    EXPECT_FALSE(is_put_by(&ctx_, true)) << "between shmemx_request_begin and _end";
    heddle_streams_2.nbi_to = to_;
    ++heddle_streams_epoch_1;
    EXPECT_FALSE(is_put_by(&ctx_, false)) << "streams have changed hands, or another thread has fenced";
}

TEST_F(FarPuts, JoinARequestThatTheStreamKnows) {
    const uintptr_t base = 0x7f0000000000;
    heddle_streams_2 = {&ctx_, heddle_streams_epoch_1, 4, to_, base, 4096, none_};
    auto* const known = reinterpret_cast<heddle_request*>(0x5581);
    heddle_request* req = known;
    const auto is_put_under = [&](heddle_request* handle) {
        req = handle;
        return is_put(&ctx_, base + 8, 8, 1, false, base, &req);
    };
    EXPECT_FALSE(is_put_under(known)) << "the stream knows none";
    EXPECT_FALSE(is_put_under(nullptr)) << "SHMEMX_REQUEST_NULL";
    claiming_ = known;
    EXPECT_TRUE(is_put_under(known));
    EXPECT_FALSE(is_put_under(nullptr)) << "SHMEMX_REQUEST_NULL";
    EXPECT_FALSE(is_put_under(reinterpret_cast<heddle_request*>(0x5583))) << "the next handle of the object";
    EXPECT_TRUE(is_put(&ctx_, base + 8, 8, 1, false, base)) << "one that joins nothing";
}

// For all addresses at once: what a stale base lets through is one interval of addresses, of which none is a user's.
TEST(HotPathProof, NoUserAddressIsNearAStaleBase) {
    for (const uintptr_t base : {kBefore.heap_base, kBefore.data_base})
        for (const uintptr_t at : {base, base + bit(46) - 1}) {  // the largest region: node_memory.cpp
            EXPECT_NE(at & bit(63), 0u) << "an address of x86-64's users: " << std::hex << at;
            EXPECT_NE(at & bit(55), 0u) << "an address of aarch64's users: " << std::hex << at;
            EXPECT_EQ(at >> 46, base >> 46) << "the interval has other addresses between its ends";
        }
}

// The table of before init answers for as many PEs as a job may have, and after init for every int.
TEST(HotPathProofDeathTest, TheTableOfBeforeInitHasNoPe) {
    static const heddle_peer* const peers = kBefore.default_ctx.peers;
    static volatile int least = -(1 << kPlausibleBits), most = (1 << kPlausibleBits) - 1;
    for (const int pe : {int{least}, -4097, -1, 0, 4096, 65536, int{most}}) EXPECT_EQ(peers[pe].heap_size, 0u) << pe;
    EXPECT_DEATH(printf("%zu", peers[most + 1].heap_size), "");
    EXPECT_DEATH(printf("%zu", peers[least - 1].heap_size), "");
    EXPECT_EXIT(
        {
            static volatile int first = INT_MIN;
            static volatile int last = INT_MAX;
            _exit(nobody() == peers && peers[first].heap_size + peers[last].data_size == 0 ? 0 : 1);
        },
        testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace heddle::memory
