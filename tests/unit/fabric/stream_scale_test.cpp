// What streams cost the PE that sends: mappings and bytes for 256 threads with 128 partners each, a stream for each.
#include "fabric/network.h"
#include "os/mappings.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>

namespace heddle::fabric {
namespace {

constexpr int kThreads = 256, kPartners = 128;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kUnderSanitizer = true;
#else
constexpr bool kUnderSanitizer = false;
#endif

std::string blob;

size_t mappings() {
    return os::read_mappings(0, UINTPTR_MAX / os::page_bytes() * os::page_bytes(), nullptr, 0);
}

size_t resident_bytes() {
    std::ifstream statm("/proc/self/statm");
    size_t all = 0, resident = 0;
    statm >> all >> resident;
    return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

std::unique_ptr<Network> open_network() {
    ChannelConfig config;
    config.token = 42;
    config.n_pes = 1 + kPartners;
    config.job.address_blob_of = [](int, char* to, char*, size_t) {
        memcpy(to, blob.data(), blob.size());
        return blob.size();
    };
    config.job.lost = [](int, Loss, const char*) { abort(); };
    config.job.notify = config.job.run_ready = [](void*) {};
    NetworkOptions options;
    options.plugin = HEDDLE_SINK_PLUGIN;
    options.transport = {"", "", 1, kMessageBytes, Protocol::kAm};
    options.rails.resize(1);
    char error[512] = "", own[kMaxAddressBlobBytes];
    auto network = Network::open(options, config, error, sizeof error);
    EXPECT_TRUE(network) << error;
    blob.assign(own, network->address_blob(own));
    return network;
}

void put_word(Stream& stream) {
    char* const at = stream.reserve("test", 2 * record::kWord);
    stream.publish(record::put_word(at, {0}, 1, record::kWord));
}

class StreamScale : public testing::Test {
  protected:
    // Each thread sends a word to each partner.
    void send_words(int rounds = 1) {
        for (int round = 0; round < rounds; ++round)
            for (StreamSet* set : sets)
                for (int pe = 1; pe <= kPartners; ++pe) put_word(set->to(pe));
        while (network->poll()) continue;
    }
    void make_sets() {
        for (int i = 0; i < kThreads; ++i) {
            sets[static_cast<size_t>(i)] = network->make_stream_set(lists[static_cast<size_t>(i)], this_thread());
            ASSERT_TRUE(sets[static_cast<size_t>(i)]);
        }
    }

    const std::unique_ptr<Network> network = open_network();
    std::array<StreamSetList, kThreads> lists;
    std::array<StreamSet*, kThreads> sets = {};
};

TEST_F(StreamScale, OfManyThreadsWithManyPartnersNeedFewMappingsAndLittleMemory) {
    const size_t mappings_before = mappings(), bytes_before = resident_bytes();
    make_sets();
    send_words();
    const size_t mapped = mappings() - mappings_before, bytes = resident_bytes() - bytes_before;
    printf("%d streams of %zu bytes: %zu mappings, %.1f MiB, of rings %.1f MiB on loan\n", kThreads * kPartners,
           sizeof(Stream), mapped, static_cast<double>(bytes) / (1 << 20),
           static_cast<double>(network->lent()) / (1 << 20));
    EXPECT_LT(mapped, 2000u);
    if (!kUnderSanitizer) {
        EXPECT_LT(bytes, size_t{64} << 20);
    }
    // However often they send.
    send_words(3);
    if (!kUnderSanitizer) {
        EXPECT_LT(resident_bytes() - bytes_before, size_t{64} << 20);
    }
    EXPECT_LT(mappings() - mappings_before, 2000u);
    EXPECT_LE(network->lent(), RingSlab::kPlenty * (512 + kThreads) / 512);
    for (StreamSetList& list : lists) {
        EXPECT_FALSE(list.is_active());
        network->return_stream_sets(list);
    }
    EXPECT_EQ(network->lent(), 0u);
}

TEST_F(StreamScale, AThreadThatEndsGivesItsRingsBack) {
    make_sets();
    send_words();
    const size_t before = network->lent();
    EXPECT_GT(before, 0u);
    for (StreamSet* set : sets) set->leave(this_thread());
    EXPECT_EQ(network->lent(), 0u);
    StreamSet* const taken = lists[0].take_over(this_thread());
    ASSERT_EQ(taken, sets[0]);
    put_word(taken->to(1));
    EXPECT_GT(network->lent(), 0u);
    while (network->poll()) continue;
    EXPECT_TRUE(taken->to(1).is_quiet());
}

}  // namespace
}  // namespace heddle::fabric
