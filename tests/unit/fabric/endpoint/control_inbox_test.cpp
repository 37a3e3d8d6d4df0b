// ControlInbox: each control message is read once, by its key and sender, in the order in which a sender's control
// messages came.
#include "fabric/endpoint/control_inbox.h"

#include <gtest/gtest.h>
#include <cstring>
#include <string>
#include <thread>

namespace heddle::fabric {
namespace {

void deliver(ControlInbox& control_inbox, uint64_t key, uint32_t from, const std::string& text) {
    control_inbox.deliver(key, from, text.data(), text.size());
}

// The control message's text, or "(none)".
std::string take(ControlInbox& control_inbox, uint64_t key, uint32_t from) {
    char text[64];
    size_t length = 0;
    return control_inbox.take(key, from, text, sizeof text, &length) ? std::string(text, length) : "(none)";
}

TEST(ControlInbox, ALetterIsTakenOnceByItsKeyAndSender) {
    ControlInbox control_inbox;
    EXPECT_EQ(take(control_inbox, 1, 2), "(none)");
    deliver(control_inbox, 1, 2, "hello");
    EXPECT_EQ(take(control_inbox, 2, 2), "(none)");
    EXPECT_EQ(take(control_inbox, 1, 1), "(none)");
    EXPECT_EQ(take(control_inbox, 1, 2), "hello");
    EXPECT_EQ(take(control_inbox, 1, 2), "(none)");
}

TEST(ControlInbox, LettersOfOneKeyAndSenderKeepTheirOrder) {
    ControlInbox control_inbox;
    for (const char* text : {"a", "b", "c"}) {
        deliver(control_inbox, 5, 1, text);
        deliver(control_inbox, 5, 2, std::string(text) + text);
    }
    deliver(control_inbox, UINT64_MAX, UINT32_MAX, "far");
    for (const char* text : {"a", "b", "c"}) EXPECT_EQ(take(control_inbox, 5, 2), std::string(text) + text);
    for (const char* text : {"a", "b", "c"}) EXPECT_EQ(take(control_inbox, 5, 1), text);
    EXPECT_EQ(take(control_inbox, 5, 1), "(none)");
    EXPECT_EQ(take(control_inbox, UINT64_MAX, UINT32_MAX), "far");
}

TEST(ControlInbox, AShortBufferTakesTheBeginningAndLearnsTheLength) {
    ControlInbox control_inbox;
    deliver(control_inbox, 1, 0, "0123456789");
    char text[4] = {'x', 'x', 'x', 'x'};
    size_t length = 0;
    ASSERT_TRUE(control_inbox.take(1, 0, text, 3, &length));
    EXPECT_EQ(length, 10u);
    EXPECT_EQ(std::string(text, 4), "012x");
    EXPECT_EQ(take(control_inbox, 1, 0), "(none)");
}

TEST(ControlInbox, EmptyLettersAreLettersToo) {
    ControlInbox control_inbox;
    control_inbox.deliver(1, 0, nullptr, 0);
    size_t length = 9;
    EXPECT_TRUE(control_inbox.take(1, 0, nullptr, 0, &length));
    EXPECT_EQ(length, 0u);
    EXPECT_FALSE(control_inbox.take(1, 0, nullptr, 0, &length));
}

TEST(ControlInbox, LettersAreCountedAsTheyCome) {
    ControlInbox control_inbox;
    EXPECT_EQ(control_inbox.received(), 0u);
    deliver(control_inbox, 1, 0, "read");
    deliver(control_inbox, 1, 0, "not read");
    EXPECT_EQ(take(control_inbox, 1, 0), "read");
    EXPECT_EQ(control_inbox.received(), 2u);
}

TEST(ControlInbox, ThreadsDeliverAndTakeAtOnce) {
    constexpr int kSenders = 3, kLetters = 2000;
    ControlInbox control_inbox;
    std::vector<std::thread> senders;
    for (int sender = 0; sender < kSenders; ++sender)
        senders.emplace_back([&control_inbox, sender] {
            for (int i = 0; i < kLetters; ++i)
                control_inbox.deliver(static_cast<uint64_t>(i % 3), static_cast<uint32_t>(sender),
                                      reinterpret_cast<const char*>(&i), sizeof i);
        });
    for (int i = 0; i < kLetters; ++i) {
        for (int sender = 0; sender < kSenders; ++sender) {
            int value = -1;
            size_t length = 0;
            while (!control_inbox.take(static_cast<uint64_t>(i % 3), static_cast<uint32_t>(sender), &value,
                                       sizeof value, &length))
                std::this_thread::yield();
            ASSERT_EQ(value, i);
            ASSERT_EQ(length, sizeof value);
        }
    }
    for (std::thread& sender : senders) sender.join();
}

}  // namespace
}  // namespace heddle::fabric
