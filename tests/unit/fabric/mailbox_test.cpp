// Mailbox: each letter is read once, by its key and sender, in the order in which a sender's letters came.
#include "fabric/mailbox.h"

#include <gtest/gtest.h>
#include <cstring>
#include <string>
#include <thread>

namespace heddle::fabric {
namespace {

void deliver(Mailbox& mailbox, uint64_t key, uint32_t from, const std::string& text) {
    mailbox.deliver(key, from, text.data(), text.size());
}

// The letter's text, or "(none)".
std::string take(Mailbox& mailbox, uint64_t key, uint32_t from) {
    char text[64];
    size_t length = 0;
    return mailbox.take(key, from, text, sizeof text, &length) ? std::string(text, length) : "(none)";
}

TEST(Mailbox, ALetterIsTakenOnceByItsKeyAndSender) {
    Mailbox mailbox;
    EXPECT_EQ(take(mailbox, 1, 2), "(none)");
    deliver(mailbox, 1, 2, "hello");
    EXPECT_EQ(take(mailbox, 2, 2), "(none)");
    EXPECT_EQ(take(mailbox, 1, 1), "(none)");
    EXPECT_EQ(take(mailbox, 1, 2), "hello");
    EXPECT_EQ(take(mailbox, 1, 2), "(none)");
}

TEST(Mailbox, LettersOfOneKeyAndSenderKeepTheirOrder) {
    Mailbox mailbox;
    for (const char* text : {"a", "b", "c"}) {
        deliver(mailbox, 5, 1, text);
        deliver(mailbox, 5, 2, std::string(text) + text);
    }
    deliver(mailbox, UINT64_MAX, UINT32_MAX, "far");
    for (const char* text : {"a", "b", "c"}) EXPECT_EQ(take(mailbox, 5, 2), std::string(text) + text);
    for (const char* text : {"a", "b", "c"}) EXPECT_EQ(take(mailbox, 5, 1), text);
    EXPECT_EQ(take(mailbox, 5, 1), "(none)");
    EXPECT_EQ(take(mailbox, UINT64_MAX, UINT32_MAX), "far");
}

TEST(Mailbox, AShortBufferTakesTheBeginningAndLearnsTheLength) {
    Mailbox mailbox;
    deliver(mailbox, 1, 0, "0123456789");
    char text[4] = {'x', 'x', 'x', 'x'};
    size_t length = 0;
    ASSERT_TRUE(mailbox.take(1, 0, text, 3, &length));
    EXPECT_EQ(length, 10u);
    EXPECT_EQ(std::string(text, 4), "012x");
    EXPECT_EQ(take(mailbox, 1, 0), "(none)");
}

TEST(Mailbox, EmptyLettersAreLettersToo) {
    Mailbox mailbox;
    mailbox.deliver(1, 0, nullptr, 0);
    size_t length = 9;
    EXPECT_TRUE(mailbox.take(1, 0, nullptr, 0, &length));
    EXPECT_EQ(length, 0u);
    EXPECT_FALSE(mailbox.take(1, 0, nullptr, 0, &length));
}

TEST(Mailbox, LettersAreCountedAsTheyCome) {
    Mailbox mailbox;
    EXPECT_EQ(mailbox.delivered(), 0u);
    deliver(mailbox, 1, 0, "read");
    deliver(mailbox, 1, 0, "not read");
    EXPECT_EQ(take(mailbox, 1, 0), "read");
    EXPECT_EQ(mailbox.delivered(), 2u);
}

TEST(Mailbox, ThreadsDeliverAndTakeAtOnce) {
    constexpr int kSenders = 3, kLetters = 2000;
    Mailbox mailbox;
    std::vector<std::thread> senders;
    for (int sender = 0; sender < kSenders; ++sender)
        senders.emplace_back([&mailbox, sender] {
            for (int i = 0; i < kLetters; ++i)
                mailbox.deliver(static_cast<uint64_t>(i % 3), static_cast<uint32_t>(sender),
                                reinterpret_cast<const char*>(&i), sizeof i);
        });
    for (int i = 0; i < kLetters; ++i) {
        for (int sender = 0; sender < kSenders; ++sender) {
            int value = -1;
            size_t length = 0;
            while (!mailbox.take(static_cast<uint64_t>(i % 3), static_cast<uint32_t>(sender), &value, sizeof value,
                                 &length))
                std::this_thread::yield();
            ASSERT_EQ(value, i);
            ASSERT_EQ(length, sizeof value);
        }
    }
    for (std::thread& sender : senders) sender.join();
}

}  // namespace
}  // namespace heddle::fabric
