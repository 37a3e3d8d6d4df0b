// Bells: who watches a gate hears when it opens, and nobody else is bothered. What every interleaving does is the
// subject of tests/concurrency/bell.pml; this runs the real thing.
#include "sync/bell.h"
#include "os/clock.h"
#include "os/pause.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace heddle::sync {
namespace {

constexpr uint64_t kLostNs = 300ull * 1000000000;  // a sleep this long means that a ring was lost

uint32_t watches_of(const Bell& bell) {
    uint64_t sum = 0;
    for (const std::atomic<uint64_t>& place : bell.watched) sum += place.load();
    return static_cast<uint32_t>(sum / Bell::kOneWatch);
}

// The bells of a node with three PEs; this thread is one of the first's.
class BellTest : public testing::Test {
  protected:
    static constexpr int kPes = 3;

    BellTest() { play(0); }
    ~BellTest() override { bells = {}; }

    // The calling thread is of that PE.
    void play(int pe) { bells = {shared, kPes, &shared[pe]}; }
    // How often each has rung.
    std::vector<uint32_t> rung() const {
        std::vector<uint32_t> counts;
        for (const Bell& bell : shared) counts.push_back(bell.gate.value.load());
        return counts;
    }
    using Counts = std::vector<uint32_t>;
    // How many gates each watches.
    Counts watched() const {
        Counts counts;
        for (const Bell& bell : shared) counts.push_back(watches_of(bell));
        return counts;
    }

    Bell shared[kPes] = {};
    Gate gate = {}, other = {};
};

TEST_F(BellTest, RingsWhileItsPeWatchesAndNotBehind) {
    gate.open(1);
    EXPECT_EQ(rung(), (Counts{0, 0, 0}));
    {
        const Watch watch(gate);
        EXPECT_EQ(gate.sleepers, kWatcher);
        EXPECT_EQ(watched(), (Counts{1, 0, 0}));
        gate.open(2);
        EXPECT_EQ(rung(), (Counts{1, 0, 0}));
        gate.advance();
        EXPECT_EQ(rung(), (Counts{2, 0, 0}));
        gate.set(4);
        EXPECT_EQ(rung(), (Counts{2, 0, 0})) << "half of opening";
        gate.wake();
        EXPECT_EQ(rung(), (Counts{3, 0, 0}));
    }
    EXPECT_EQ(gate.sleepers, 0u);
    EXPECT_EQ(watched(), (Counts{0, 0, 0}));
    gate.open(5);
    gate.advance();
    gate.set(7);
    gate.wake();
    EXPECT_EQ(rung(), (Counts{3, 0, 0}));
}

TEST_F(BellTest, OnlyPesThatWatchTheGateHear) {
    play(1);
    const Watch first(gate);
    play(2);
    const Watch second(gate), third(other);
    play(0);  // who opens is of any PE
    gate.open(1);
    EXPECT_EQ(rung(), (Counts{0, 1, 1}));
    EXPECT_EQ(watched(), (Counts{0, 1, 2}));
    other.open(1);
    EXPECT_EQ(rung(), (Counts{0, 1, 2}));
}

TEST_F(BellTest, PesThatWatchedTheGateOnceDoNotHear) {
    for (int pe : {1, 2}) {
        play(pe);
        const Watch watch(gate);
    }
    EXPECT_NE(gate.watchers, 0u);
    play(2);
    const Watch another(other);
    play(0);
    const Watch watch(gate);
    gate.open(1);
    EXPECT_EQ(rung(), (Counts{1, 0, 0}));
}

// So many gates that several share a place in the bell, whatever their names.
TEST_F(BellTest, NoneOfManyWatchesIsForgotten) {
    constexpr size_t kGates = 3 * Bell::kPlaces;
    std::vector<Gate> gates(kGates);
    std::vector<std::unique_ptr<Watch>> watches;
    const uint32_t seed = std::random_device{}();
    printf("seed %u\n", seed);
    std::mt19937 random(seed);
    std::vector<size_t> order(kGates);
    for (size_t i = 0; i < kGates; ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    play(1);
    for (size_t i : order) watches.push_back(std::make_unique<Watch>(gates[i]));
    EXPECT_EQ(watched(), (Counts{0, kGates, 0}));
    uint32_t opened = 0;
    while (!watches.empty()) {
        gates[order[watches.size() - 1]].open(1);
        EXPECT_EQ(rung(), (Counts{0, ++opened, 0}));
        watches.pop_back();
    }
    EXPECT_EQ(watched(), (Counts{0, 0, 0}));
    for (Gate& one : gates) one.open(2);
    EXPECT_EQ(rung(), (Counts{0, opened, 0}));
}

TEST_F(BellTest, EachOfMoreThan64PesHearsWhatItWatchesAlone) {
    constexpr size_t kMany = 300;
    const auto many = std::make_unique<Bell[]>(kMany);
    std::vector<Gate> gates(kMany);
    const auto watch_each = [&](auto gate_of) {
        std::vector<std::unique_ptr<Watch>> watches;
        for (size_t pe = 0; pe < kMany; ++pe) {
            bells = {many.get(), kMany, &many[pe]};
            watches.push_back(std::make_unique<Watch>(gate_of(pe)));
        }
        return watches;
    };
    const auto rings = [&] {
        Counts counts;
        for (size_t pe = 0; pe < kMany; ++pe) counts.push_back(many[pe].gate.value.load());
        return counts;
    };
    Counts right(kMany, 1);
    {
        const auto watches = watch_each([&](size_t) -> Gate& { return gate; });
        gate.open(1);
        EXPECT_EQ(rings(), right);
    }
    const auto watches = watch_each([&](size_t pe) -> Gate& { return gates[pe]; });
    gate.open(2);
    for (size_t pe = 0; pe < kMany; ++pe) {
        gates[pe].open(1);
        ++right[pe];
        EXPECT_EQ(rings(), right);
    }
}

TEST_F(BellTest, AGateThatNobodyWatchesRingsNoBellAlthoughOthersAreWatched) {
    const Watch watch(other);
    for (uint32_t i = 1; i <= 10; ++i) gate.open(i);
    EXPECT_EQ(rung(), (Counts{0, 0, 0}));
    EXPECT_EQ(gate.sleepers, 0u);
}

TEST_F(BellTest, ABellItselfIsNotWatched) {
    Gate& bell = bells.own->gate;
    {
        const Watch watch(bell);
        EXPECT_EQ(bell.sleepers, 0u);
        EXPECT_EQ(watched(), (Counts{0, 0, 0}));
        bell.advance();
        EXPECT_EQ(rung(), (Counts{1, 0, 0})) << "once, not for ever";
    }
    EXPECT_EQ(bell.sleepers, 0u);
    EXPECT_EQ(watched(), (Counts{0, 0, 0}));
}

TEST_F(BellTest, AWatchEndsOnAnyThreadOfItsPe) {
    auto watch = std::make_unique<Watch>(gate);
    std::thread([&] { watch.reset(); }).join();  // a fiber may go on there
    EXPECT_EQ(gate.sleepers, 0u);
    EXPECT_EQ(watched(), (Counts{0, 0, 0}));
}

// Sleeps until the gate is open, at the own bell; false when no ring came.
bool sleep_at_bell_until(Gate& gate, uint32_t target) {
    const timespec deadline = os::to_timespec(os::now_ns() + kLostNs);
    const Watch watch(gate);
    for (;;) {
        Gate& bell = bells.own->gate;
        const uint32_t heard = bell.value.load(std::memory_order_seq_cst);
        if (gate.reached(target))
            return true;
        const uint64_t begin = os::now_ns();
        bell.sleep(heard + 1, &deadline);
        if (os::now_ns() - begin >= kLostNs)
            return false;
    }
}

bool sleep_at_gate_until(Gate& gate, uint32_t target) {
    const timespec deadline = os::to_timespec(os::now_ns() + kLostNs);
    while (!gate.reached(target)) {
        const uint64_t begin = os::now_ns();
        gate.sleep(target, &deadline);
        if (os::now_ns() - begin >= kLostNs)
            return false;
    }
    return true;
}

TEST_F(BellTest, SleepersOfBothKindsAreWokenAtAnyMoment) {
    constexpr uint32_t kRounds = 3000;
    const uint32_t seed = std::random_device{}();
    printf("seed %u\n", seed);
    Gate answers[4] = {};
    std::atomic<int> lost{0};
    std::vector<std::thread> sleepers;
    for (int i = 0; i < 4; ++i)
        sleepers.emplace_back([&, i] {
            play(i % kPes);
            for (uint32_t round = 1; round <= kRounds; ++round) {
                if (!(i % 2 == 0 ? sleep_at_bell_until(gate, round) : sleep_at_gate_until(gate, round)))
                    lost.fetch_add(1);
                answers[i].open(round);
            }
        });
    std::mt19937 random(seed);
    for (uint32_t round = 1; round <= kRounds; ++round) {
        for (uint32_t i = random() % 300; i > 0; --i) os::pause();
        if (random() % 2 == 0) {
            gate.open(round);
        } else {
            gate.set(round);
            gate.wake();
        }
        for (Gate& answer : answers)
            if (!sleep_at_gate_until(answer, round))
                lost.fetch_add(1);
    }
    for (std::thread& sleeper : sleepers) sleeper.join();
    EXPECT_EQ(lost, 0) << "seed " << seed;
    EXPECT_EQ(gate.sleepers, 0u);
    EXPECT_EQ(watched(), (Counts{0, 0, 0}));
}

TEST_F(BellTest, ProcessesHearEachOther) {
    constexpr uint32_t kRounds = 5000;
    struct Node {
        Bell bells[2];
        alignas(128) Gate turn[2];
    };
    auto* const node =
        static_cast<Node*>(mmap(nullptr, sizeof(Node), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(node, MAP_FAILED);
    const auto play_ping_pong = [&](int me) {
        bells = {node->bells, 2, &node->bells[me]};
        for (uint32_t i = 1; i <= kRounds; ++i) {
            if (me == 0)
                node->turn[0].open(i);
            if (!sleep_at_bell_until(node->turn[1 - me], i))
                return false;
            if (me == 1)
                node->turn[1].open(i);
        }
        return true;
    };
    const pid_t child = fork();
    if (child == 0)
        _exit(play_ping_pong(1) ? 0 : 1);
    EXPECT_TRUE(play_ping_pong(0));
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    munmap(node, sizeof(Node));
}

}  // namespace
}  // namespace heddle::sync
