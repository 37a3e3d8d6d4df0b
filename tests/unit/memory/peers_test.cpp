// The peer table answers for every int, and holds memory only for the PEs of the job.
#include "memory/peers.h"
#include "os/memfd.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>
#include <climits>
#include <fstream>

namespace heddle::memory {
namespace {

class PeerTableTest : public testing::Test {
  protected:
    static constexpr int kPes = 300;
    // The entries of whole pages.
    const int n_writable_ =
        static_cast<int>(os::round_up(kPes * sizeof(heddle_peer), os::page_bytes()) / sizeof(heddle_peer));

    void SetUp() override {
        peers_ = make_peer_table(kPes);
        ASSERT_NE(peers_, nullptr);
        for (int pe = 0; pe < kPes; ++pe) peers_[pe] = {names_ + pe, 1, names_ + pe, 2};
    }

    heddle_peer* peers_ = nullptr;
    char names_[kPes];
};
using PeerTableDeathTest = PeerTableTest;

void expect_nobody(const heddle_peer& peer, int pe) {
    EXPECT_EQ(peer.heap, nullptr) << pe;
    EXPECT_EQ(peer.heap_size, 0u) << pe;
    EXPECT_EQ(peer.data, nullptr) << pe;
    EXPECT_EQ(peer.data_size, 0u) << pe;
}

// Lets this process map no more than `bytes` beyond what it has mapped already.
bool limit_address_space(size_t bytes) {
    size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const size_t most = pages * os::page_bytes() + bytes;
    const rlimit limit = {most, most};
    return setrlimit(RLIMIT_AS, &limit) == 0;
}

TEST_F(PeerTableTest, AnswersForEveryInt) {
    for (int pe : {INT_MIN, INT_MIN + 1, -1000000000, -257, -256, -1, n_writable_, 1000000000, INT_MAX - 1, INT_MAX})
        expect_nobody(peers_[pe], pe);
    for (int pe = kPes; pe < n_writable_; ++pe) expect_nobody(peers_[pe], pe);
    for (int pe = 0; pe < kPes; ++pe) EXPECT_EQ(peers_[pe].heap, names_ + pe);
}

TEST_F(PeerTableTest, ATableOfNobodyAnswersToo) {
    const heddle_peer* nobody = make_peer_table(0);
    ASSERT_NE(nobody, nullptr);
    for (int pe : {INT_MIN, -1, 0, 1, INT_MAX}) expect_nobody(nobody[pe], pe);
}

// Tables that answer for fewer numbers, each up to its own ends, and take as much less address space.
TEST_F(PeerTableTest, OfFewerBitsAnswersForFewerNumbers) {
    for (int bits : {12, 13, 20, 30}) {
        heddle_peer* peers = make_peer_table(kPes, bits);
        ASSERT_NE(peers, nullptr) << bits;
        const int64_t most = (int64_t{1} << bits) - 1, least = -(int64_t{1} << bits);
        for (const int64_t pe : {least, least + 1, int64_t{-1}, int64_t{0}, int64_t{n_writable_}, most - 1, most})
            expect_nobody(peers[pe], static_cast<int>(pe));
        for (int pe = 0; pe < kPes; ++pe) peers[pe] = {names_ + pe, 3, nullptr, 0};
        EXPECT_EQ(peers[kPes - 1].heap, names_ + kPes - 1);
        expect_nobody(peers[kPes], kPes);
        EXPECT_EQ(peers_[0].heap_size, 1u) << "tables share memory";
    }
}

// 64 GiB hold no table for every int, but many smaller ones: what was asked for is what is taken.
TEST_F(PeerTableDeathTest, OfFewerBitsTakeLessAddressSpace) {
    EXPECT_EXIT(
        {
            if (!limit_address_space(size_t{64} << 30))
                _exit(0);
            for (int i = 0; i < 500; ++i)
                if (!make_peer_table(kPes, 20))
                    _exit(1);
            _exit(0);
        },
        testing::ExitedWithCode(0), "");
}

// One that has no room for its own PEs is refused rather than made too small.
TEST_F(PeerTableTest, HasRoomForAllItsPes) {
    constexpr int kMany = 5000;
    heddle_peer* peers = make_peer_table(kMany, 13);
    ASSERT_NE(peers, nullptr);
    for (int pe = 0; pe < kMany; ++pe) peers[pe].heap_size = 1;
    expect_nobody(peers[-1], -1);
    EXPECT_EQ(make_peer_table(kMany, 12), nullptr);
    EXPECT_EQ(make_peer_table(1, 11), nullptr) << "fewer than the least";
}

TEST_F(PeerTableDeathTest, IsReadOnlyOutsideItsPages) {
    static volatile int below = -1;
    static volatile int above = n_writable_;
    EXPECT_DEATH(peers_[below].heap = names_, "");
    EXPECT_DEATH(peers_[above].heap = names_, "");
}

// Where the system refuses the address space, a smaller reservation answers for PE numbers that are not far out.
TEST_F(PeerTableDeathTest, IsSmallerUnderALimitOfAddressSpace) {
    EXPECT_EXIT(
        {
            if (!limit_address_space(size_t{16} << 30))
                _exit(0);
            const heddle_peer* peers = make_peer_table(kPes);
            _exit(peers && !peers[-1000].heap_size && !peers[1000].heap_size ? 0 : 1);
        },
        testing::ExitedWithCode(0), "");
}

TEST_F(PeerTableDeathTest, ReadsAtTheEndsDoNotFault) {
    EXPECT_EXIT(
        {
            static volatile int least = INT_MIN;
            static volatile int most = INT_MAX;
            _exit(peers_[least].heap || peers_[most].data ? 1 : 0);
        },
        testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace heddle::memory
