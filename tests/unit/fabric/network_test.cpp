// Network: what it loads, and the stream sets that it lends, between networks in one process.
#include "unit/fabric/networks.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace heddle::fabric {
namespace {

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

    for (int stream_set = 0; stream_set < 2 * kChannels; ++stream_set) {
        Stream& stream = networks[0]->make_stream_set(list, this_thread())->to(1);
        for (uint64_t i = 1; i <= 20; ++i) {
            put(stream, 8 * static_cast<uint64_t>(stream_set), i);
            ASSERT_TRUE(becomes(heaps[1][static_cast<size_t>(stream_set)], i)) << "stream set " << stream_set;
            if (i % 10 == 0)
                os::sleep_ns(2000000);  // it sleeps on its descriptors
        }
    }
    const uint64_t begin = os::now_ns();
    bool quiet = false;
    while (!quiet && os::now_ns() - begin < kLostNs) {
        quiet = true;
        networks[0]->for_each_stream_set(
            [&](StreamSet& stream_set) { quiet &= stream_set.all([](Stream& one) { return one.is_quiet(); }); });
    }
    EXPECT_TRUE(quiet);
}

// One thread waits for the address of a PE; another one sends to other PEs through the same channel.
TEST(NetworkOfThree, WhoLooksUpAnAddressHoldsUpNobody) {
    std::vector<uint64_t> heaps[kMaxPes];
    std::unique_ptr<Network> networks[kMaxPes];
    for (int pe = 0; pe < kMaxPes; ++pe) {
        heaps[pe].resize(64);
        std::string error;
        networks[pe] = open_network(pe, heaps[pe], &error, HEDDLE_FAKE_PLUGIN, Protocol::kAm, false, kMaxPes);
        ASSERT_TRUE(networks[pe]) << error;
        char address_blob[kMaxAddressBlobBytes];
        address_blobs[pe] = std::string(address_blob, networks[pe]->address_blob(address_blob));
        gets[pe] = 0;
    }
    const auto put = [](Stream& stream, uint64_t value) {
        stream.publish(record::put_word(stream.reserve("test", 2 * record::kWord), {0}, value, sizeof value));
    };
    const auto arrives = [&](int pe, uint64_t value) {
        return becomes([&] {
            for (const auto& network : networks) network->poll();
            return load(heaps[pe][0]) == value;
        });
    };
    StreamSetList list;
    StreamSet* stream_sets[2 * kChannels];  // each channel has two
    for (StreamSet*& stream_set : stream_sets) stream_set = networks[0]->make_stream_set(list, this_thread());

    is_slow[2] = true;
    std::thread other([&] { put(stream_sets[0]->to(2), 1); });
    ASSERT_TRUE(becomes([] { return gets[2] == 1; }));
    uint64_t value = 0;
    for (StreamSet* const stream_set : stream_sets) {
        if (stream_set == stream_sets[0])
            continue;
        put(stream_set->to(1), ++value);
        EXPECT_TRUE(arrives(1, value));
    }
    EXPECT_EQ(load(heaps[2][0]), 0u);
    is_slow[2] = false;
    other.join();
    EXPECT_TRUE(arrives(2, 1));
    for (StreamSet* const stream_set : stream_sets) {
        put(stream_set->to(2), ++value);
        EXPECT_TRUE(arrives(2, value));
    }
    EXPECT_EQ(gets[0], 0) << "its own first message has brought its address";
    EXPECT_EQ(gets[1], 1) << "once, for all channels";
    EXPECT_EQ(gets[2], 1);
}

TEST_F(NetworkTest, TheServiceThreadStopsAndStartsAgain) {
    for (uint64_t round = 1; round <= 5; ++round) {
        ASSERT_TRUE(networks[0]->start() && networks[1]->start());
        put(networks[0]->make_stream_set(list, nullptr)->to(1), 0, round);
        EXPECT_TRUE(becomes(heaps[1][0], round));
        networks[1]->stop();
        networks[0]->stop();
        networks[0]->stop();  // has stopped
    }
    // And without it, whoever polls does the work.
    put(networks[0]->make_stream_set(list, nullptr)->to(1), 8, 9);
    while (networks[0]->poll() || networks[1]->poll()) {
    }
    EXPECT_EQ(heaps[1][1], 9u);
}

TEST_F(NetworkTest, ANativeOneReachesTheRegionsOfOthers) {
    EXPECT_FALSE(networks[0]->is_native());
    EXPECT_FALSE(networks[0]->make_stream_set(list, nullptr)->to(1).is_native("test"));
    open(Protocol::kRma);
    for (const auto& network : networks) {
        EXPECT_TRUE(network->is_native());
        ASSERT_TRUE(network->start());
    }
    Stream& stream = networks[0]->make_stream_set(list, this_thread())->to(1);
    ASSERT_TRUE(stream.is_native("test"));
    const uint64_t value = 77;
    stream.put_native("test", {24}, reinterpret_cast<const char*>(&value), sizeof value);
    EXPECT_TRUE(becomes(heaps[1][3], value));
}

TEST_F(NetworkTest, StreamSetsAreLentAgainWithTheirStreams) {
    StreamSet* const first = networks[0]->make_stream_set(list, this_thread());
    StreamSet* const second = networks[0]->make_stream_set(list, nullptr);
    ASSERT_TRUE(first && second && first != second);
    EXPECT_EQ(list.first.load(), second);
    EXPECT_EQ(second->next, first);
    EXPECT_NE(first->producer.stream_set, second->producer.stream_set);
    EXPECT_EQ(first->producer.thread.load(), this_thread());
    EXPECT_EQ(second->producer.thread.load(), nullptr);
    Stream* const stream = &first->to(1);
    EXPECT_EQ(&first->to(1), stream);
    EXPECT_EQ(stream->pe(), 1);
    put(*stream, 0, 1);
    while (networks[0]->poll() || networks[1]->poll()) {
    }
    EXPECT_TRUE(stream->is_quiet());
    networks[0]->return_stream_sets(list);
    EXPECT_EQ(list.first.load(), nullptr);

    std::thread([&] {
        StreamSetList others;
        StreamSet* stream_set;
        do {
            stream_set = networks[0]->make_stream_set(others, this_thread());
        } while (stream_set != first);
        EXPECT_EQ(stream_set->producer.thread.load(), this_thread());
        EXPECT_EQ(&stream_set->to(1), stream);
        put(*stream, 8, 2);
        while (networks[0]->poll() || networks[1]->poll()) {
        }
        EXPECT_TRUE(stream->is_quiet());
        networks[0]->return_stream_sets(others);
    }).join();
    EXPECT_EQ(heaps[1][0], 1u);
    EXPECT_EQ(heaps[1][1], 2u);
}

TEST_F(NetworkTest, AStreamSetOfAThreadThatHasEndedIsTakenOverWithWhatIsOutstanding) {
    StreamSet* left = nullptr;
    std::thread([&] {
        left = networks[0]->make_stream_set(list, this_thread());
        put(left->to(1), 0, 1);
        EXPECT_EQ(list.take_over(this_thread()), nullptr) << "its thread lives";
        left->leave(&list);
        EXPECT_EQ(left->producer.thread.load(), this_thread()) << "another one has ended";
        left->leave(this_thread());
    }).join();
    EXPECT_TRUE(list.is_active());
    EXPECT_EQ(list.take_over(this_thread()), left);
    EXPECT_EQ(list.take_over(this_thread()), nullptr) << "taken over once";
    put(left->to(1), 8, 2);
    while (networks[0]->poll() || networks[1]->poll()) {
    }
    EXPECT_EQ(heaps[1][0], 1u);
    EXPECT_EQ(heaps[1][1], 2u);
    EXPECT_FALSE(list.is_active());
}

}  // namespace
}  // namespace heddle::fabric
