// Networks of PEs in one process, over a fake transport, and a fixture with two of them.
#pragma once

#include "fabric/network.h"
#include "os/clock.h"
#include "unit/becomes.h"
#include "unit/fabric/fake_transport.h"

#include <gtest/gtest.h>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace heddle::fabric {

constexpr int kChannels = 3;
constexpr uint64_t kSilenceNs = 2000000000;
constexpr uint64_t kMs = 1000000;

constexpr int kMaxPes = 3;
inline std::string address_blobs[kMaxPes];
inline progress::WaitPolicy policies[kMaxPes];
inline std::atomic<int> gets[kMaxPes];      // of the PEs' addresses
inline std::atomic<bool> is_slow[kMaxPes];  // the job does not find the PE's address yet

inline size_t address_blob_of(int pe, char* address_blob, char*, size_t) {
    ++gets[pe];
    while (is_slow[pe]) std::this_thread::yield();
    memcpy(address_blob, address_blobs[pe].data(), address_blobs[pe].size());
    return address_blobs[pe].size();
}

constexpr int kNobody = -1;
inline std::atomic<int> lost_pe{kNobody};
inline std::atomic<bool> may_be_lost{false};
inline std::atomic<int> landings{0};

inline void lost(int pe, Loss, const char*) {
    if (!may_be_lost)
        abort();
    lost_pe = pe;
}

inline std::unique_ptr<Network> open_network(int pe, std::vector<uint64_t>& heap, std::string* error,
                                             const char* plugin = HEDDLE_FAKE_PLUGIN, Protocol protocol = Protocol::kAm,
                                             bool in_ring = false, int n_pes = 2) {
    ChannelConfig config;
    config.regions.of[0] = {reinterpret_cast<char*>(heap.data()), heap.size() * sizeof(uint64_t)};
    config.token = 42;
    config.pe = pe;
    config.n_pes = n_pes;
    config.job.address_blob_of = address_blob_of;
    config.job.lost = lost;
    config.job.notify = config.job.run_ready = [](void*) { landings.fetch_add(1); };
    config.policy = &policies[pe];
    if (in_ring)
        config.ring = {1 - pe, 1 - pe};
    NetworkOptions options;
    options.heartbeat_timeout_ns = kSilenceNs;
    options.plugin = plugin;
    options.transport = {"", "", kChannels, kMessageBytes, protocol};
    options.rails.resize(1);
    char text[512] = "";
    auto made = Network::open(options, config, text, sizeof text);
    *error = text;
    return made;
}

class NetworkTest : public testing::Test {
  protected:
    void SetUp() override { open(Protocol::kAm); }
    void open(Protocol protocol, bool in_ring = false) {
        std::string error;
        for (int pe = 0; pe < 2; ++pe) {
            networks[pe] = open_network(pe, heaps[pe], &error, HEDDLE_FAKE_PLUGIN, protocol, in_ring);
            ASSERT_TRUE(networks[pe]) << error;
            char address_blob[kMaxAddressBlobBytes];
            address_blobs[pe] = std::string(address_blob, networks[pe]->address_blob(address_blob));
        }
    }
    void TearDown() override {
        // The service threads of both end before what they send to goes.
        for (const auto& each : networks) each->stop();
    }

    static void put(Stream& stream, uint64_t offset, uint64_t value) {
        char* const at = stream.reserve("test", 2 * record::kWord);
        stream.publish(record::put_word(at, {offset}, value, sizeof value));
    }

    std::vector<uint64_t> heaps[2] = {std::vector<uint64_t>(64), std::vector<uint64_t>(64)};
    std::unique_ptr<Network> networks[2];
    StreamSetList list;
};

}  // namespace heddle::fabric
