// Network: what it loads, the lanes that it lends, and its service thread, between two networks in one process.
#include "fabric/network.h"
#include "os/clock.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace heddle::fabric {
namespace {

constexpr int kWires = 3;
constexpr uint64_t kLostNs = 20ull * 1000000000;

std::string cards[2];

size_t card_of(int pe, char* card, char*, size_t) {
    memcpy(card, cards[pe].data(), cards[pe].size());
    return cards[pe].size();
}

[[noreturn]] void lost(int, const char*) {
    abort();
}

bool becomes(const uint64_t& word, uint64_t value) {
    const uint64_t begin = os::now_ns();
    while (__atomic_load_n(&word, __ATOMIC_ACQUIRE) != value) {
        if (os::now_ns() - begin > kLostNs)
            return false;
        std::this_thread::yield();
    }
    return true;
}

std::unique_ptr<Network> open_network(int pe, std::vector<uint64_t>& heap, std::string* error,
                                      const char* plugin = HEDDLE_FAKE_PLUGIN, Protocol protocol = Protocol::kBatch) {
    Surroundings surroundings;
    surroundings.regions.of[0] = {reinterpret_cast<char*>(heap.data()), heap.size() * sizeof(uint64_t)};
    surroundings.token = 42;
    surroundings.pe = pe;
    surroundings.n_pes = 2;
    surroundings.card_of = card_of;
    surroundings.lost = lost;
    surroundings.landed = [](void*) {};
    NetworkOptions options;
    options.plugin = plugin;
    options.transport = {"", "", kWires, kMessageBytes, protocol};
    char text[512] = "";
    auto network = Network::open(options, surroundings, text, sizeof text);
    *error = text;
    return network;
}

class NetworkTest : public testing::Test {
  protected:
    void SetUp() override {
        std::string error;
        for (int pe = 0; pe < 2; ++pe) {
            networks[pe] = open_network(pe, heaps[pe], &error);
            ASSERT_TRUE(networks[pe]) << error;
            char card[kMostCardBytes];
            cards[pe] = std::string(card, networks[pe]->card(card));
        }
    }
    void TearDown() override {
        // The service threads of both end before what they send to goes.
        for (const auto& network : networks) network->stop();
    }

    static void put(Stream& stream, uint64_t offset, uint64_t value) {
        char* const at = stream.room("test", 2 * record::kWord);
        stream.publish(record::put_word(at, {offset}, value, sizeof value));
    }

    std::vector<uint64_t> heaps[2] = {std::vector<uint64_t>(64), std::vector<uint64_t>(64)};
    std::unique_ptr<Network> networks[2];
    std::atomic<Lane*> list{nullptr};
};

TEST_F(NetworkTest, WhatIsNoTransportIsNotOpened) {
    std::string error;
    EXPECT_FALSE(open_network(0, heaps[0], &error, "no_such_file.so"));
    EXPECT_NE(error.find("no_such_file.so"), std::string::npos) << error;
    Dl_info other;  // a library of another kind
    ASSERT_NE(dladdr(reinterpret_cast<void*>(getpid), &other), 0);
    const std::string path = other.dli_fname;
    EXPECT_FALSE(open_network(0, heaps[0], &error, path.c_str()));
    EXPECT_EQ(error, path + " is no transport of this version of Heddle");
}

TEST_F(NetworkTest, TheServiceThreadServesAProgramThatComputes) {
    ASSERT_TRUE(networks[0]->start() && networks[1]->start());
    EXPECT_STREQ(networks[0]->name(), "fake");
    EXPECT_EQ(networks[0]->wires(), kWires);
    for (int lane = 0; lane < 2 * kWires; ++lane) {
        Stream& stream = networks[0]->make_lane(list, this_thread())->to(1);
        for (uint64_t i = 1; i <= 20; ++i) {
            put(stream, 8 * static_cast<uint64_t>(lane), i);
            ASSERT_TRUE(becomes(heaps[1][static_cast<size_t>(lane)], i)) << "lane " << lane;
            if (i % 10 == 0)
                os::sleep_ns(2000000);  // it sleeps on its descriptors
        }
    }
    const uint64_t begin = os::now_ns();
    bool quiet = false;
    while (!quiet && os::now_ns() - begin < kLostNs) {
        quiet = true;
        networks[0]->for_each_lane([&](Lane& lane) { quiet &= lane.all([](Stream& one) { return one.is_quiet(); }); });
    }
    EXPECT_TRUE(quiet);
}

TEST_F(NetworkTest, TheServiceThreadStopsAndStartsAgain) {
    for (uint64_t round = 1; round <= 5; ++round) {
        ASSERT_TRUE(networks[0]->start() && networks[1]->start());
        put(networks[0]->make_lane(list, nullptr)->to(1), 0, round);
        EXPECT_TRUE(becomes(heaps[1][0], round));
        networks[1]->stop();
        networks[0]->stop();
        networks[0]->stop();  // has stopped
    }
    // And without it, whoever polls does the work.
    put(networks[0]->make_lane(list, nullptr)->to(1), 8, 9);
    while (networks[0]->poll() || networks[1]->poll()) {
    }
    EXPECT_EQ(heaps[1][1], 9u);
}

TEST_F(NetworkTest, ANativeOneReachesTheRegionsOfOthers) {
    EXPECT_FALSE(networks[0]->is_native());
    EXPECT_FALSE(networks[0]->make_lane(list, nullptr)->to(1).is_native("test"));
    std::string error;
    for (int pe = 0; pe < 2; ++pe) {
        networks[pe] = open_network(pe, heaps[pe], &error, HEDDLE_FAKE_PLUGIN, Protocol::kNative);
        ASSERT_TRUE(networks[pe]) << error;
        char card[kMostCardBytes];
        cards[pe] = std::string(card, networks[pe]->card(card));
        EXPECT_TRUE(networks[pe]->is_native());
        ASSERT_TRUE(networks[pe]->start());
    }
    Stream& stream = networks[0]->make_lane(list, this_thread())->to(1);
    ASSERT_TRUE(stream.is_native("test"));
    const uint64_t value = 77;
    stream.put_native("test", {24}, reinterpret_cast<const char*>(&value), sizeof value);
    EXPECT_TRUE(becomes(heaps[1][3], value));
}

TEST_F(NetworkTest, LanesAreLentAgainWithTheirStreams) {
    Lane* const first = networks[0]->make_lane(list, this_thread());
    Lane* const second = networks[0]->make_lane(list, nullptr);
    ASSERT_TRUE(first && second && first != second);
    EXPECT_EQ(list.load(), second);
    EXPECT_EQ(second->next, first);
    EXPECT_NE(first->producer.lane, second->producer.lane);
    EXPECT_EQ(first->producer.thread.load(), this_thread());
    EXPECT_EQ(second->producer.thread.load(), nullptr);
    Stream* const stream = &first->to(1);
    EXPECT_EQ(&first->to(1), stream);
    EXPECT_EQ(stream->pe(), 1);
    put(*stream, 0, 1);
    while (networks[0]->poll() || networks[1]->poll()) {
    }
    EXPECT_TRUE(stream->is_quiet());
    networks[0]->give_lanes(list);
    EXPECT_EQ(list.load(), nullptr);

    std::thread([&] {
        std::atomic<Lane*> others{nullptr};
        Lane* lane;
        do {
            lane = networks[0]->make_lane(others, this_thread());
        } while (lane != first);
        EXPECT_EQ(lane->producer.thread.load(), this_thread());
        EXPECT_EQ(&lane->to(1), stream);
        put(*stream, 8, 2);
        while (networks[0]->poll() || networks[1]->poll()) {
        }
        EXPECT_TRUE(stream->is_quiet());
        networks[0]->give_lanes(others);
    }).join();
    EXPECT_EQ(heaps[1][0], 1u);
    EXPECT_EQ(heaps[1][1], 2u);
}

}  // namespace
}  // namespace heddle::fabric
