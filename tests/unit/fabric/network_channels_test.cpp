// Channels that nobody uses: who looks at them, and when.
#include "unit/fabric/networks.h"

#include <gtest/gtest.h>
#include <thread>

namespace heddle::fabric {
namespace {

class ChannelsTest : public NetworkTest {
  protected:
    // Both PEs use channel 0.
    void SetUp() override {
        NetworkTest::SetUp();
        for (int pe = 0; pe < 2; ++pe) transports[pe] = stream_set_of(pe, 0).channels[0]->config().transport;
    }
    // Counts the looks of this thread at a PE's channels from now on.
    void count(int pe) {
        const std::thread::id caller = std::this_thread::get_id();
        for (size_t number = 0; number < kChannels; ++number)
            cable(pe, number).on_progress = [this, caller, number] {
                looks[number] += std::this_thread::get_id() == caller;
            };
    }
    Transport::Channel& cable(int pe, size_t number) { return *transports[pe]->channels[number]; }
    StreamSet& stream_set_of(int pe, int channel) {
        while (true)
            if (StreamSet* const made = networks[pe]->make_stream_set(lists[pe], nullptr); made->channel == channel)
                return *made;
    }
    void poll(int pe) {
        for (int i = 0; i < kPolls; ++i) networks[pe]->poll();
    }
    // Polls of this thread look at the channel, where the service thread does not have its lock.
    bool is_polled(int pe, size_t number) {
        looks[number] = 0;
        return becomes([&] {
            networks[pe]->poll();
            return looks[number] > 0;
        });
    }
    void TearDown() override {
        NetworkTest::TearDown();
        for (int pe = 0; pe < 2; ++pe)
            for (size_t number = 0; number < kChannels; ++number) cable(pe, number).on_progress = nullptr;
    }

    static constexpr int kPolls = 1000;
    Transport* transports[2] = {};
    StreamSetList lists[2];
    std::atomic<int> looks[kChannels] = {};
};

TEST_F(ChannelsTest, StreamSetsTakeAsManyAsTheyMay) {
    EXPECT_EQ(networks[0]->channels(), kChannels);
    for (const int count : {2, 1, kChannels, kChannels + 5}) {
        networks[0]->spread_over(count);
        const int taken = std::min(count, kChannels);
        EXPECT_EQ(networks[0]->channels(), taken);
        int users[kChannels] = {};
        for (int i = 0; i < 4 * kChannels; ++i) ++users[networks[0]->make_stream_set(list, nullptr)->channel];
        for (int number = 0; number < kChannels; ++number)
            EXPECT_EQ(users[number] > 0, number < taken) << count << " channels, number " << number;
        networks[0]->return_stream_sets(list);
    }
}

TEST_F(ChannelsTest, ProgramsPollChannelsInUse) {
    count(0);
    ASSERT_TRUE(networks[0]->start() && networks[1]->start());
    poll(0);
    EXPECT_TRUE(is_polled(0, 0));
    EXPECT_EQ(looks[1] + looks[2], 0);
    stream_set_of(0, 1);
    poll(0);
    EXPECT_TRUE(is_polled(0, 1));
    EXPECT_EQ(looks[2], 0);
}

TEST_F(ChannelsTest, ProgramsPollAllWhereNoServiceThreadDoes) {
    count(0);
    poll(0);
    EXPECT_EQ(looks[2], kPolls) << "none runs yet";
    ASSERT_TRUE(networks[0]->start());
    networks[0]->set_service(Service::kNone);
    looks[2] = 0;
    poll(0);
    EXPECT_TRUE(is_polled(0, 2)) << "the channels are the program's";
}

// PE 1 polls without an end, so its service thread keeps away; it has never sent.
TEST_F(ChannelsTest, WhatComesOnOthersIsFoundBesideAProgramThatPolls) {
    count(1);
    ASSERT_TRUE(networks[0]->start() && networks[1]->start());
    Stream& stream = stream_set_of(0, 2).to(1);
    put(stream, 0, 1);
    EXPECT_TRUE(becomes([&] {
        networks[1]->poll();
        return load(heaps[1][0]) == 1;
    }));
    EXPECT_TRUE(is_polled(1, 2)) << "from then on by the program";
    poll(1);
    EXPECT_EQ(looks[1], 0);
    EXPECT_TRUE(becomes([&] { return stream.is_quiet(); }));
}

TEST_F(ChannelsTest, OthersStayArmedWhileTheServiceThreadSleeps) {
    Stream& stream = stream_set_of(0, 0).to(1);
    ASSERT_TRUE(networks[0]->start() && networks[1]->start());
    constexpr uint64_t kMessages = 20;
    const auto arms = [&](size_t number) { return cable(1, number).arms.load(); };
    os::sleep_ns(10 * kMs);
    const unsigned used = arms(0), unused = arms(1) + arms(2);
    for (uint64_t i = 1; i <= kMessages; ++i) {
        put(stream, 0, i);
        ASSERT_TRUE(becomes(heaps[1][0], i));
        os::sleep_ns(5 * kMs);  // it sleeps again
    }
    EXPECT_GE(arms(0) - used, kMessages);
    EXPECT_EQ(arms(1) + arms(2), unused);
    put(stream_set_of(0, 2).to(1), 8, 7);
    EXPECT_TRUE(becomes(heaps[1][1], 7)) << "and wake it";
}

}  // namespace
}  // namespace heddle::fabric
