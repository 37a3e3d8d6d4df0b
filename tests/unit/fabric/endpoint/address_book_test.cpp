// Address book: each address is asked of the job once, and who waits for one holds up nobody else.
#include "fabric/endpoint/address_book.h"

#include <gtest/gtest.h>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace heddle::fabric {
namespace {

constexpr int kSlow = 7, kUnknownPe = 8;
std::atomic<int> gets[16];
std::atomic<bool> is_held{false};

size_t look_up(int pe, char* address_blob, char* error, size_t error_bytes) {
    ++gets[pe];
    while (pe == kSlow && is_held) std::this_thread::yield();
    if (pe == kUnknownPe)
        return static_cast<void>(snprintf(error, error_bytes, "nobody knows PE %d", pe)), 0;
    return static_cast<size_t>(sprintf(address_blob, "address of %d", pe));
}

class AddressBookTest : public testing::Test {
  protected:
    void SetUp() override {
        for (auto& count : gets) count = 0;
        is_held = false;
    }
    std::string find(int pe) {
        char error[64] = "";
        const std::string* const found = book.find(pe, look_up, error, sizeof error);
        return found ? *found : std::string("error: ") + error;
    }
    AddressBook book;
};

TEST_F(AddressBookTest, AsksOncePerPe) {
    for (int i = 0; i < 3; ++i)
        for (int pe = 0; pe < 3; ++pe) EXPECT_EQ(find(pe), "address of " + std::to_string(pe));
    for (int pe = 0; pe < 3; ++pe) EXPECT_EQ(gets[pe], 1);
}

TEST_F(AddressBookTest, ThreadsThatNeedOnePeAskOnceAndHoldUpNobodyElse) {
    is_held = true;
    std::vector<std::thread> threads;
    std::atomic<int> right{0};
    for (int i = 0; i < 8; ++i) threads.emplace_back([&] { right += find(kSlow) == "address of 7"; });
    while (gets[kSlow] == 0) std::this_thread::yield();
    EXPECT_EQ(find(1), "address of 1");
    book.learn(2, "sent by 2", 9);
    EXPECT_EQ(find(2), "sent by 2");
    EXPECT_EQ(right, 0);
    is_held = false;
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(right, 8);
    EXPECT_EQ(gets[kSlow], 1);
    EXPECT_EQ(gets[2], 0);
}

TEST_F(AddressBookTest, WhatThePeSendsItselfEndsTheWait) {
    is_held = true;
    std::thread asks([&] { EXPECT_EQ(find(kSlow), "sent by 7") << "what was learned first stays"; });
    while (gets[kSlow] == 0) std::this_thread::yield();
    std::thread waits([&] { EXPECT_EQ(find(kSlow), "sent by 7"); });
    book.learn(kSlow, "sent by 7", 9);
    book.learn(kSlow, "once more", 9);
    waits.join();
    is_held = false;
    asks.join();
    EXPECT_EQ(gets[kSlow], 1);
}

TEST_F(AddressBookTest, WhatTheJobDoesNotKnowIsAskedOnce) {
    EXPECT_EQ(find(kUnknownPe), "error: nobody knows PE 8");
    EXPECT_EQ(find(kUnknownPe), "error: nobody knows PE 8");
    EXPECT_EQ(gets[kUnknownPe], 1);
    book.learn(kUnknownPe, "here", 4);
    EXPECT_EQ(find(kUnknownPe), "here");
}

}  // namespace
}  // namespace heddle::fabric
