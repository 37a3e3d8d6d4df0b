// Network: what it loads, the stream sets that it lends, and its service thread, between two networks in one process.
#include "fabric/network.h"
#include "os/clock.h"
#include "unit/fabric/fake_transport.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <cstdarg>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace {

thread_local long woken = 0;  // sleepers that this thread has woken

}  // namespace

// In place of libc's: what futex_wake_all says.
extern "C" long syscall(long number, ...) noexcept {
    va_list list;
    va_start(list, number);
    long given[6];
    for (long& one : given) one = va_arg(list, long);
    va_end(list);
    long (*const next)(long, ...) = reinterpret_cast<long (*)(long, ...)>(dlsym(RTLD_NEXT, "syscall"));
    const long result = next(number, given[0], given[1], given[2], given[3], given[4], given[5]);
    if (number == SYS_futex && given[1] == FUTEX_WAKE && result > 0)
        woken += result;
    return result;
}

namespace heddle::fabric {
namespace {

constexpr int kChannels = 3;
constexpr uint64_t kSilenceNs = 2000000000;
constexpr uint64_t kMs = 1000000;
constexpr uint64_t kLostNs = 300000 * kMs;

constexpr int kMaxPes = 3;
std::string address_blobs[kMaxPes];
progress::WaitPolicy policies[kMaxPes];
std::atomic<int> gets[kMaxPes];      // of the PEs' addresses
std::atomic<bool> is_slow[kMaxPes];  // the job does not find the PE's address yet

size_t address_blob_of(int pe, char* address_blob, char*, size_t) {
    ++gets[pe];
    while (is_slow[pe]) std::this_thread::yield();
    memcpy(address_blob, address_blobs[pe].data(), address_blobs[pe].size());
    return address_blobs[pe].size();
}

constexpr int kNobody = -1;
std::atomic<int> lost_pe{kNobody};
std::atomic<bool> may_be_lost{false};
std::atomic<int> landings{0};

void lost(int pe, Loss, const char*) {
    if (!may_be_lost)
        abort();
    lost_pe = pe;
}

template <class Condition>
bool becomes(Condition condition) {
    const uint64_t begin = os::now_ns();
    while (!condition()) {
        if (os::now_ns() - begin > kLostNs)
            return false;
        std::this_thread::yield();
    }
    return true;
}

uint64_t load(const uint64_t& word) {
    return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
}

bool becomes(const uint64_t& word, uint64_t value) {
    return becomes([&] { return load(word) == value; });
}

std::unique_ptr<Network> open_network(int pe, std::vector<uint64_t>& heap, std::string* error,
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
    auto network = Network::open(options, config, text, sizeof text);
    *error = text;
    return network;
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
        for (const auto& network : networks) network->stop();
    }

    static void put(Stream& stream, uint64_t offset, uint64_t value) {
        char* const at = stream.reserve("test", 2 * record::kWord);
        stream.publish(record::put_word(at, {offset}, value, sizeof value));
    }

    std::vector<uint64_t> heaps[2] = {std::vector<uint64_t>(64), std::vector<uint64_t>(64)};
    std::unique_ptr<Network> networks[2];
    StreamSetList list;
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

// A poll that ends at its bound leaves the rest to a service thread that sleeps: nothing of it is in the network, where
// it would wake that thread.
TEST_F(NetworkTest, TheServiceThreadDoesWhatAPollHasLeft) {
    Stream& stream = networks[0]->make_stream_set(list, this_thread())->to(1);
    Channel& channel = stream.channel();
    Transport::Channel& cable = *channel.config().transport->channels[static_cast<size_t>(channel.number())];
    const std::thread::id caller = std::this_thread::get_id();
    bool others_queue = false;  // the caller's
    uint64_t rounds = 0;
    cable.on_progress = [&] {
        if (std::this_thread::get_id() != caller || !others_queue)
            return;
        put(stream, 8, ++rounds);
        channel.queue(&stream);
    };
    ASSERT_TRUE(networks[0]->start() && networks[1]->start());
    for (int i = 0; i < 10; ++i) {
        os::sleep_ns(5 * kMs);  // it sleeps on its descriptors
        cable.holds = others_queue = true;
        channel.poll();
        others_queue = false;
        cable.holds = false;
        ASSERT_TRUE(becomes(heaps[1][1], rounds));
        ASSERT_TRUE(becomes([&] { return stream.is_quiet(); }));
    }
    EXPECT_GT(rounds, 0u);
    for (const auto& network : networks) network->stop();
    cable.on_progress = nullptr;
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

// --- What the service thread does, as the policy has it

class ServiceTest : public NetworkTest {
  protected:
    void SetUp() override {
        NetworkTest::SetUp();
        start();
    }
    void start() {
        ASSERT_TRUE(networks[0]->start());
        const std::set<long> before = threads();
        ASSERT_TRUE(networks[1]->start());
        for (const long thread : threads())
            if (!before.contains(thread))
                service = thread;
        stream = &networks[0]->make_stream_set(list, nullptr)->to(1);
    }
    void TearDown() override {
        NetworkTest::TearDown();
        for (progress::WaitPolicy& policy : policies) policy.posted = policy.pollers = 0;
        may_be_lost = false;
        lost_pe = kNobody;
    }
    static std::set<long> threads() {
        std::set<long> numbers;
        for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task"))
            numbers.insert(std::stol(entry.path().filename()));
        return numbers;
    }
    // How often PE 1's service thread has slept so far, as the kernel counts.
    long sleeps() const {
        std::ifstream status("/proc/self/task/" + std::to_string(service) + "/status");
        const std::string name = "voluntary_ctxt_switches:";
        for (std::string line; std::getline(status, line);)
            if (line.rfind(name, 0) == 0)
                return std::stol(line.substr(name.size()));
        return -1;
    }
    // PE 0 puts, and PE 1's service thread, nobody else, sees to it.
    bool is_served() {
        put(*stream, 0, ++last);
        return becomes(heaps[1][0], last);
    }
    // From some put on nothing arrives, as far as one can see in a while.
    bool becomes_unserved() {
        return becomes([&] {
            put(*stream, 0, ++last);
            os::sleep_ns(50 * kMs);
            return load(heaps[1][0]) != last;
        });
    }

    Stream* stream = nullptr;
    long service = 0;
    uint64_t last = 0;
};

TEST_F(ServiceTest, NoneLeavesTheChannelsToTheProgramUntilItServesAgain) {
    EXPECT_TRUE(is_served());
    networks[1]->set_service(Service::kNone);
    EXPECT_TRUE(becomes_unserved());
    EXPECT_TRUE(becomes([&] {
        networks[1]->poll();
        return load(heaps[1][0]) == last;
    })) << "the program serves itself";
    put(*stream, 0, ++last);
    os::sleep_ns(50 * kMs);
    EXPECT_NE(load(heaps[1][0]), last);
    networks[1]->set_service(Service::kSleeps);
    EXPECT_TRUE(becomes(heaps[1][0], last)) << "what has come meanwhile, too";
    EXPECT_TRUE(is_served());
}

// PE 0 falls silent, and PE 1 hears that; nobody who waits for data is bothered.
TEST_F(ServiceTest, HeartbeatsAreServedInAnyCase) {
    for (Service kind : {Service::kNone, Service::kSpins}) {
        TearDown();
        may_be_lost = true;
        landings = 0;
        open(Protocol::kAm, true);
        networks[1]->set_service(kind);
        start();
        os::sleep_ns(1200 * kMs);  // two heartbeats
        networks[0]->stop();
        EXPECT_EQ(lost_pe, kNobody);
        EXPECT_TRUE(becomes([] { return lost_pe == 0; })) << "kind " << static_cast<int>(kind);
        EXPECT_EQ(landings, 0);
    }
}

// PE 1 may come out of the last barrier much later than PE 0.
TEST_F(ServiceTest, WhoHasLeftIsNotMissed) {
    TearDown();
    open(Protocol::kAm, true);
    start();
    os::sleep_ns(1200 * kMs);  // two heartbeats
    networks[0]->begin_leaving();
    networks[0]->stop();
    os::sleep_ns(kSilenceNs + 1000 * kMs);
    EXPECT_EQ(lost_pe, kNobody);
}

TEST_F(ServiceTest, NoneDoesNotWakeUpBecauseTheProgramPolls) {
    networks[1]->set_service(Service::kNone);
    EXPECT_TRUE(becomes_unserved());
    const long before = sleeps();
    ASSERT_GE(before, 0);
    for (int i = 0; i < 1000; ++i) {
        networks[1]->poll();
        os::sleep_ns(kMs / 2);
    }
    EXPECT_LT(sleeps() - before, 50) << "a few for heartbeats";
}

TEST_F(ServiceTest, KeepsAwayFromThreadsThatWaitUntilItIsToTakeOver) {
    policies[1].posted = 1;
    EXPECT_TRUE(is_served()) << "nobody waits";
    policies[1].pollers = 1;
    EXPECT_TRUE(becomes_unserved());
    policies[1].pollers = 0;
    networks[1]->take_over();
    EXPECT_TRUE(becomes(heaps[1][0], last));
    EXPECT_TRUE(is_served());
}

TEST_F(ServiceTest, SpinningItServesAlthoughOthersWait) {
    policies[1].posted = policies[1].pollers = 1;
    networks[1]->set_service(Service::kSpins);
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(is_served());
    networks[1]->set_service(Service::kSleeps);
    EXPECT_TRUE(becomes_unserved());
}

TEST_F(ServiceTest, TakingOverEndsANap) {
    policies[1].posted = policies[1].pollers = 1;  // naps, one behind the other
    EXPECT_TRUE(becomes([&] {
        networks[1]->set_service(Service::kSleeps);  // it may sleep on its descriptors, having had to tell something
        os::sleep_ns(kMs / 4);
        woken = 0;
        networks[1]->take_over();
        return woken == 1;
    }));
}

TEST_F(ServiceTest, StopsWhateverItDoes) {
    for (Service kind : {Service::kNone, Service::kSpins, Service::kSleeps}) {
        networks[1]->set_service(kind);
        os::sleep_ns(kMs);
        networks[1]->stop();
        networks[0]->stop();
        start();
    }
    EXPECT_TRUE(is_served());
}

}  // namespace
}  // namespace heddle::fabric
