// The service thread of a network: when it serves, and when it keeps away.
#include "base/counters.h"
#include "unit/fabric/networks.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <cstdarg>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>

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

// A record that is left to threads that poll, and do not any more: the service thread comes, whatever it did meanwhile.
TEST_F(NetworkTest, TheServiceThreadDoesWhatIsLeftToThreadsThatFallAsleep) {
    StreamSet& stream_set = *networks[0]->make_stream_set(list, this_thread());
    const auto own_threads = policies[0].own_threads.load();
    ASSERT_TRUE(networks[0]->start() && networks[1]->start());
    policies[0].own_threads = policies[0].own_cores + 1;
    policies[0].pollers = 1;
    uint64_t left = 0;
    for (uint64_t i = 1; left < 100; ++i) {
        if (i % 2 == 0)
            networks[0]->poll();  // the service thread keeps away
        put(stream_set.to(1), 0, i);
        left += stream_set.producer.expected_wait.begin(os::now_ns());
        ASSERT_TRUE(becomes(heaps[1][0], i));
        ASSERT_TRUE(becomes([&] { return stream_set.to(1).is_quiet(); }));
    }
    policies[0].own_threads = own_threads;
    policies[0].pollers = 0;
    for (const auto& network : networks) network->stop();
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

// PE 1 polls, a message comes, and PE 1 computes. Its service thread gives it time for its next poll, and comes when a
// nap has passed without one.
TEST_F(ServiceTest, WhereTheProgramHasAllCoresItIsGivenTimeForItsNextPoll) {
    progress::WaitPolicy& policy = policies[1];
    constexpr int kMessages = 200;
    // How many messages have been seen to so long behind the poll, and not much later.
    const auto count_served = [&](uint32_t threads, uint32_t sleepers, uint64_t later_ns) {
        policy.own_threads = threads;
        policy.own_sleepers = sleepers;
        int served = 0;
        for (int i = 0; i < kMessages; ++i) {
            networks[1]->poll();
            const uint64_t end_ns = os::now_ns() + later_ns;
            put(*stream, 0, ++last);
            os::sleep_ns(later_ns);
            served += load(heaps[1][0]) == last && os::now_ns() < end_ns + kMs / 4;
        }
        return served;
    };
    // A busy machine delays the thread and the messages alike: one quiet moment is enough.
    int beside_a_core = 0, without = 0, asleep = 0, later = 0;
    for (int i = 0; i < 10; ++i) {
        beside_a_core = count_served(policy.own_cores - 1, 0, kMs / 2);
        without = count_served(policy.own_cores, 0, kMs / 2);
        asleep = count_served(policy.own_cores, 1, kMs / 2);
        later = count_served(policy.own_cores, 0, kMs * 3 / 2);
        if (beside_a_core > kMessages / 4 && without < beside_a_core / 2 && asleep > kMessages / 4 &&
            later > kMessages / 10)
            break;
    }
    policy.own_threads = policy.own_sleepers = 0;
    EXPECT_GT(beside_a_core, kMessages / 4);
    EXPECT_LT(without, beside_a_core / 2);
    EXPECT_GT(asleep, kMessages / 4) << "a thread that sleeps waits for what comes";
    EXPECT_GT(later, kMessages / 10) << "a PE that computes answers within two naps";
    EXPECT_TRUE(is_served());
}

// --- Watching

// A core that watches a line until it changes, or up to the limit.
struct Watched {
    static inline std::atomic<const std::atomic<uint32_t>*> line;
    static inline std::atomic<uint64_t> waits, longest_ns;
    static inline std::atomic<bool> lasts;  // only a change of the line ends a wait
    static inline uint32_t seen;            // of the thread that watches

    static void arm(const void* at) {
        line = static_cast<const std::atomic<uint32_t>*>(at);
        seen = line.load()->load();
    }
    static void wait(uint64_t limit_ns) {
        ++waits;
        longest_ns = std::max(longest_ns.load(), limit_ns);
        const uint64_t end_ns = os::now_ns() + limit_ns;
        while (line.load()->load() == seen && (lasts || os::now_ns() < end_ns)) std::this_thread::yield();
    }
    static constexpr os::Monitor kMonitor = {"watched", arm, wait};
};

class WatchTest : public ServiceTest {
  protected:
    void SetUp() override {
        ServiceTest::SetUp();
        own_ = networks[1]->make_stream_set(own_list_, nullptr);
        policies[1].monitor = &Watched::kMonitor;
        Watched::lasts = false;
        Watched::waits = Watched::longest_ns = 0;
        networks[1]->set_service(Service::kWatches);
    }
    void TearDown() override {
        Watched::lasts = false;
        policies[1].own_threads = 0;
        ServiceTest::TearDown();
        policies[1].monitor = nullptr;
    }
    // How often PE 1's service thread has armed a transport.
    unsigned arms() const {
        unsigned all = 0;
        for (const auto& channel : own_->channels[0]->config().transport->channels) all += channel->arms;
        return all;
    }
    // While messages come, of a collective that is under way. One may not do: a loaded machine may take the core for
    // longer than the thread watches behind it.
    bool watches() {
        policies[1].posted = 1;
        const uint64_t before = Watched::waits;
        return becomes([&] { return is_served() && Watched::waits > before + 10; });
    }

  private:
    StreamSetList own_list_;
    const StreamSet* own_ = nullptr;  // of PE 1
};

TEST_F(WatchTest, WithTheInterruptOffWhileSomethingIsUnderWay) {
    ASSERT_TRUE(watches());
    EXPECT_TRUE(becomes([&] {  // a loaded machine may let longer pass between two than the thread watches
        const unsigned armed = arms();
        for (int i = 0; i < 100; ++i) EXPECT_TRUE(is_served());
        return arms() == armed;
    }));
    EXPECT_TRUE(watches());
    EXPECT_LE(Watched::longest_ns, kMs / 20);
    EXPECT_STREQ(networks[1]->service_name(), "watched");
}

TEST_F(WatchTest, AMessageIsUnderWayForAWhileAndThenTheThreadSleeps) {
    EXPECT_TRUE(becomes([&] {
        const uint64_t before = Watched::waits;
        EXPECT_TRUE(is_served());
        os::sleep_ns(kMs);
        return Watched::waits > before;
    }));
    EXPECT_TRUE(becomes([&] {
        const uint64_t waits = Watched::waits;
        const long slept = sleeps();
        os::sleep_ns(200 * kMs);
        return Watched::waits == waits && sleeps() == slept;
    })) << "idle, it takes no core and does not wake up";
    EXPECT_TRUE(is_served());
}

TEST_F(WatchTest, WhatIsUnderWayAndKeepsSilentIsNotWatchedForLong) {
    ASSERT_TRUE(watches());
    EXPECT_TRUE(becomes([&] {
        const uint64_t waits = Watched::waits;
        os::sleep_ns(100 * kMs);
        return Watched::waits == waits;
    })) << "a collective is under way, and nothing comes";
    EXPECT_TRUE(watches()) << "what comes at last is watched again";
    policies[1].posted = 0;
    EXPECT_TRUE(is_served());
    EXPECT_TRUE(watches()) << "and so is the next collective";
}

TEST_F(WatchTest, WithoutACoreItSleeps) {
    policies[1].own_threads = policies[1].own_cores;
    EXPECT_STREQ(networks[1]->service_name(), "epoll");
    os::sleep_ns(10 * kMs);
    Watched::waits = 0;
    const unsigned armed = arms();
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(is_served());
    EXPECT_EQ(Watched::waits, 0u);
    EXPECT_GT(arms(), armed);
}

// What nothing but the line would tell.
TEST_F(WatchTest, TakingOverEndsTheWatch) {
    ASSERT_TRUE(watches());
    Watched::lasts = true;
    ASSERT_TRUE(becomes([&] {
        put(*stream, 0, ++last);
        os::sleep_ns(20 * kMs);
        return load(heaps[1][0]) != last;
    }));
    networks[1]->take_over();
    EXPECT_TRUE(becomes(heaps[1][0], last));
}

// --- While large data comes

class LargeDataTest : public ServiceTest {
  protected:
    static constexpr size_t kBytes = 1 << 20;

    void SetUp() override {
        for (auto& heap : heaps) heap.resize(kBytes / sizeof(uint64_t));
        ServiceTest::SetUp();
        const StreamSet& own = *networks[1]->make_stream_set(own_list_, nullptr);
        cable_ = own.channels[0]->config().transport->channels[static_cast<size_t>(stream->channel().number())].get();
        bring_for(20 * kMs);  // a rate is known
    }
    void TearDown() override {
        arrives();
        policies[1].own_sleepers = 0;
        ServiceTest::TearDown();
    }
    // Large data is announced to PE 1, which asks for it; it does not come.
    void ask() {
        cable_->keeps_large = true;
        stream->put_large("test", {0}, body_.data(), kBytes);
        stream->channel().send(stream);
    }
    // A message says that something has come.
    void arrives() {
        cable_->keeps_large = false;
        EXPECT_TRUE(becomes([&] {
            put(*stream, 0, ++last);
            os::sleep_ns(kMs);
            return stream->is_quiet();
        }));
    }
    void bring_for(uint64_t ns) {
        ask();
        os::sleep_ns(ns);
        arrives();
    }
    // How often a service thread naps while it is asked how often.
    static uint64_t naps_within(uint64_t ns) {
        const uint64_t before = base::counters->service_naps.read();
        os::sleep_ns(ns);
        return base::counters->service_naps.read() - before;
    }

  private:
    Transport::Channel* cable_ = nullptr;  // of PE 1
    StreamSetList own_list_;
    std::vector<char> body_ = std::vector<char>(kBytes, 1);
};

TEST_F(LargeDataTest, TheServiceThreadNaps) {
    EXPECT_TRUE(becomes([&] {
        ask();
        const uint64_t naps = naps_within(10 * kMs);
        os::sleep_ns(10 * kMs);
        arrives();
        return naps > 3;
    }));
    EXPECT_EQ(naps_within(20 * kMs), 0u) << "nothing comes";
}

TEST_F(LargeDataTest, TheServiceThreadDoesNotNapWhileAThreadSleeps) {
    policies[1].own_sleepers = 1;
    for (int i = 0; i < 10; ++i) {
        ask();
        EXPECT_EQ(naps_within(10 * kMs), 0u);
        arrives();
    }
}

TEST_F(LargeDataTest, AThreadThatFallsAsleepEndsTheNap) {
    EXPECT_TRUE(becomes([&] {
        ask();
        bool ended = false;
        for (int i = 0; i < 30 && !ended; ++i) {
            os::sleep_ns(kMs / 4);
            woken = 0;
            networks[1]->take_over();
            ended = woken == 1;
        }
        os::sleep_ns(10 * kMs);
        arrives();
        return ended;
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
