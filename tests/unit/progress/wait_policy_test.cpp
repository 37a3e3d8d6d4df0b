// How a wait passes its time: the order of its phases, seen through a recording monitor and through sched_yield and
// nanosleep, which this executable replaces.
#include "progress/wait_policy.h"

#include "unit/becomes.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <cstdlib>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace {

struct Event {
    char what;  // r: ready() asked, a: monitor armed, w: monitor waited, y: yielded, n: napped, S: shown, C: cleared
    uint64_t at_ns;
    uint64_t length_ns;  // of a nap or a monitor's wait
};
thread_local std::vector<Event>* recorded = nullptr;  // of this thread, while it records

void record(char what, uint64_t length_ns = 0) {
    if (recorded)
        recorded->push_back({what, heddle::os::now_ns(), length_ns});
}

}  // namespace

extern "C" int sched_yield() noexcept {
    record('y');
    return static_cast<int>(syscall(SYS_sched_yield));
}

extern "C" int nanosleep(const timespec* duration, timespec* left) {
    record('n', static_cast<uint64_t>(duration->tv_sec) * 1000000000u + static_cast<uint64_t>(duration->tv_nsec));
    return static_cast<int>(syscall(SYS_nanosleep, duration, left));
}

bool core_is_shared = false;  // every yield lets another thread run

extern "C" int getrusage(__rusage_who_t who, rusage* usage) noexcept {
    static thread_local long switches = 0;
    const int status = static_cast<int>(syscall(SYS_getrusage, who, usage));
    usage->ru_nivcsw = core_is_shared ? ++switches : 0;
    return status;
}

namespace heddle::progress {
namespace {

constexpr uint64_t kUs = 1000, kMs = 1000000;

const os::Monitor kRecording = {"recording", [](const void*) { record('a'); },
                                [](uint64_t limit_ns) { record('w', limit_ns); }};

const char* shown_function;
const void* shown_address;
void record_show(const char* function, const void* address) {
    record(function ? 'S' : 'C');
    if (function) {
        shown_function = function;
        shown_address = address;
    }
}

// Runs body on a thread of its own with `policy`, because a thread is counted in the first policy that it waits under.
template <class Body>
void with_policy(WaitPolicy& policy, Body body) {
    std::thread([&] {
        wait_policy = &policy;
        body();
        wait_policy = nullptr;
    }).join();
}

std::string letters(const std::vector<Event>& events) {
    std::string text;
    for (const Event& event : events) text += event.what;
    return text;
}

size_t count(const std::string& text, char letter) {
    size_t found = 0;
    for (char c : text) found += c == letter;
    return found;
}

// The events of a wait that ends after duration_ns, and not before it has so many of a letter: a busy machine may take the
// core away for longer than duration_ns.
std::vector<Event> events_of_wait(WaitPolicy& policy, uint64_t duration_ns, bool one_line = true, char letter = 'r',
                                  size_t least = 1) {
    std::vector<Event> events;
    with_policy(policy, [&] {
        const uint64_t end = os::now_ns() + duration_ns;
        recorded = &events;
        wait_for_store(
            "unit", &policy,
            [&] {
                record('r');
                const uint64_t now = os::now_ns();
                return now >= end && (count(letters(events), letter) >= least || now >= end + kLostNs);
            },
            one_line);
        recorded = nullptr;
    });
    return events;
}

TEST(WaitPolicy, AConditionThatHoldsCostsOneLook) {
    WaitPolicy policy;
    EXPECT_EQ(letters(events_of_wait(policy, 0)), "r");
}

TEST(WaitPolicy, ArmsLooksAgainAndOnlyThenWaits) {
    WaitPolicy policy;
    policy.own_cores = 1000;
    policy.monitor = &kRecording;
    policy.spin_ns = 3000 * kMs;
    int looks = 0;
    std::vector<Event> events;
    with_policy(policy, [&] {
        recorded = &events;
        wait_for_store("unit", &policy, [&] {
            record('r');
            return ++looks == 6;
        });
        recorded = nullptr;
    });
    // look, look, then twice: arm, look, wait, look; then arm, and the look that sees the change keeps it from waiting.
    EXPECT_EQ(letters(events), "rrarwrarwr");
    looks = 4;  // the sixth look comes right after the arm
    events.clear();
    with_policy(policy, [&] {
        recorded = &events;
        wait_for_store("unit", &policy, [&] {
            record('r');
            return ++looks >= 7;
        });
        recorded = nullptr;
    });
    EXPECT_EQ(letters(events), "rrarr");
}

TEST(WaitPolicy, TheMonitorIsBoundedAndNotUsedForSeveralLines) {
    WaitPolicy policy;
    policy.own_cores = 1000;
    policy.monitor = &kRecording;
    policy.spin_ns = 3000 * kMs;  // long, so that a busy machine does not run past it
    uint64_t longest = 0;
    for (const Event& event : events_of_wait(policy, 20 * kMs, true, 'w'))
        longest = std::max(longest, event.what == 'w' ? event.length_ns : 0);
    EXPECT_GT(longest, 0u);
    EXPECT_LE(longest, policy.spin_ns);
    const std::string several = letters(events_of_wait(policy, 20 * kMs, false, 'r', 33));
    EXPECT_EQ(count(several, 'a') + count(several, 'w'), 0u);
    EXPECT_GT(count(several, 'r'), 32u);
}

TEST(WaitPolicy, SpinsThenYieldsThenSleepsAndShowsWhere) {
    WaitPolicy policy;
    policy.own_cores = 1000;
    policy.spin_ns = 50 * kMs;  // long, so that a busy machine does not run past a whole phase
    policy.yield_ns = 150 * kMs;
    policy.show = record_show;
    const uint64_t begin = os::now_ns();
    const std::vector<Event> events = events_of_wait(policy, 300 * kMs, true, 'n');
    const std::string text = letters(events);
    const size_t first_yield = text.find('y'), first_nap = text.find('n'), shown = text.find('S');
    ASSERT_NE(first_yield, std::string::npos);
    ASSERT_NE(first_nap, std::string::npos);
    EXPECT_GE(events[first_yield].at_ns - begin, policy.spin_ns);
    EXPECT_GE(events[first_nap].at_ns - begin, policy.spin_ns + policy.yield_ns);
    EXPECT_LT(text.rfind('y'), first_nap) << "yields after it began to sleep";
    EXPECT_LT(shown, first_nap);
    EXPECT_GT(shown, text.rfind('y'));
    EXPECT_EQ(count(text, 'S'), 1u);
    EXPECT_EQ(count(text, 'C'), 1u);
    EXPECT_EQ(text.back(), 'C');
    EXPECT_STREQ(shown_function, "unit");
    EXPECT_EQ(shown_address, &policy);
}

TEST(WaitPolicy, AShortWaitIsNotShown) {
    WaitPolicy policy;
    policy.own_cores = 1000;
    policy.spin_ns = policy.yield_ns = 3000 * kMs;
    policy.show = record_show;
    const std::string text = letters(events_of_wait(policy, kMs));
    EXPECT_EQ(count(text, 'S') + count(text, 'C') + count(text, 'n'), 0u);
}

TEST(WaitPolicy, NapsAreBounded) {
    WaitPolicy policy;
    policy.spin_ns = 0;
    policy.yield_ns = 0;
    const uint64_t begin = os::now_ns();
    size_t naps = 0;
    for (const Event& event : events_of_wait(policy, 100 * kMs, true, 'n', 11)) {
        if (event.what != 'n')
            continue;
        ++naps;
        EXPECT_GE(event.length_ns, 5 * kUs);
        EXPECT_LE(event.length_ns, 2 * kMs);
        EXPECT_LE(event.length_ns, std::max<uint64_t>(5 * kUs, (event.at_ns - begin) / 16 + 1));
    }
    EXPECT_GT(naps, 10u);
}

TEST(WaitPolicy, OversubscribedNodeNeitherSpinsNorWatches) {
    std::atomic<uint32_t> threads{3};
    WaitPolicy policy;
    policy.own_cores = 1000;
    policy.monitor = &kRecording;
    policy.spin_ns = policy.yield_ns = 3000 * kMs;
    policy.node_threads = &threads;
    policy.node_cores = 2;
    const std::string text = letters(events_of_wait(policy, 2 * kMs, true, 'y', 2));
    EXPECT_EQ(count(text, 'a') + count(text, 'w'), 0u);
    // Each look but the first is preceded by a yield: no look is a spin.
    EXPECT_EQ(count(text, 'r'), count(text, 'y') + 2);
    EXPECT_EQ(text.substr(0, 4), "rryr");
}

TEST(WaitPolicy, OversubscribedPeNeitherSpinsNorWatches) {
    WaitPolicy policy;
    policy.monitor = &kRecording;
    policy.spin_ns = policy.yield_ns = 3000 * kMs;
    policy.own_cores = 2;
    policy.own_threads.store(3);
    const std::string text = letters(events_of_wait(policy, 2 * kMs, true, 'y', 2));
    EXPECT_EQ(count(text, 'a') + count(text, 'w'), 0u);
    EXPECT_EQ(count(text, 'r'), count(text, 'y') + 2);
}

TEST(WaitPolicy, AYieldThatLetsAnotherThreadRunKeepsTheNextWaitsFromSpinning) {
    WaitPolicy policy;
    policy.own_cores = 1000;
    policy.oversubscribed_ns = 3000 * kMs;
    for (bool shared : {false, true}) {
        policy.spin_ns = 10 * kMs;
        const auto yields_of_wait = [&](uint64_t duration_ns, size_t least) {
            core_is_shared = shared;
            return count(letters(events_of_wait(policy, duration_ns, true, 'y', least)), 'y');
        };
        const uint64_t begin = os::now_ns();
        EXPECT_GE(yields_of_wait(11 * kMs, 1), 1u);
        EXPECT_EQ(policy.oversubscribed(begin), shared);
        EXPECT_EQ(policy.oversubscribed(begin + policy.oversubscribed_ns), shared);
        EXPECT_FALSE(policy.oversubscribed(os::now_ns() + policy.oversubscribed_ns)) << "for ever";
        policy.spin_ns = 3000 * kMs;
        EXPECT_EQ(yields_of_wait(kMs, shared ? 1 : 0) > 0, shared);
    }
    core_is_shared = false;
}

uint64_t cpu_ns_of_thread() {
    rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    const auto ns = [](const timeval& time) {
        return static_cast<uint64_t>(time.tv_sec) * 1000000000u + static_cast<uint64_t>(time.tv_usec) * 1000u;
    };
    return ns(usage.ru_utime) + ns(usage.ru_stime);
}

TEST(WaitPolicy, ALongWaitBurnsLittle) {
    WaitPolicy policy;  // the defaults of settings.def
    policy.own_cores = 1000;
    sync::EventCount event_count = {};
    const uint64_t second = 1000 * kMs;
    with_policy(policy, [&] {
        const uint64_t burned = cpu_ns_of_thread(), end = os::now_ns() + second;
        wait_for_store("unit", &policy, [&] { return os::now_ns() >= end; });
        EXPECT_LT(cpu_ns_of_thread() - burned, second / 20);
    });
    std::thread opener([&] {
        os::sleep_ns(second);
        event_count.advance_to(1);
    });
    with_policy(policy, [&] {
        const uint64_t burned = cpu_ns_of_thread();
        wait_for_event_count("unit", event_count, 1);
        EXPECT_LT(cpu_ns_of_thread() - burned, second / 20);
    });
    opener.join();
}

TEST(WaitPolicy, TheCpuTimeOfWaitsIsCountedWhereItIsAskedFor) {
    WaitPolicy policy;
    policy.own_cores = 1000;
    const auto spin = [&] {
        const uint64_t before = cpu_ns_of_thread();
        uint64_t burned = 0;
        wait_for_store("unit", &policy, [&] { return (burned = cpu_ns_of_thread() - before) >= 100 * kUs; });
        return burned;
    };
    with_policy(policy, [&] {
        spin();
        EXPECT_EQ(policy.cpu_of_waits_ns.load(), 0u);
        policy.counts_cpu_of_waits = true;
        const uint64_t before = cpu_ns_of_thread(), first = spin(), second = spin();
        EXPECT_GE(2 * policy.cpu_of_waits_ns.load(), first + second);  // each begins a moment before its wait
        EXPECT_LE(policy.cpu_of_waits_ns.load(), cpu_ns_of_thread() - before);
    });
}

TEST(WaitPolicy, AEventCountIsSleptOnNotNappedOn) {
    WaitPolicy policy;
    policy.spin_ns = policy.yield_ns = 0;
    policy.show = record_show;
    sync::EventCount event_count = {};
    std::vector<Event> events;
    std::thread opener([&] {  // once it sleeps, for a busy machine begins the wait at any time
        while (event_count.sleepers.load(std::memory_order_relaxed) == 0) os::sleep_ns(kMs);
        event_count.advance_to(1);
    });
    with_policy(policy, [&] {
        recorded = &events;
        wait_for_event_count("unit", event_count, 1);
        recorded = nullptr;
    });
    opener.join();
    EXPECT_EQ(count(letters(events), 'n'), 0u);
    EXPECT_EQ(letters(events).substr(letters(events).size() - 1), "C");
    EXPECT_EQ(shown_address, &event_count);
}

// A loop over tests ends whoever else makes progress, and costs little where others do.
TEST(WaitPolicy, SomeTestsThatDoNotHoldMakeProgress) {
    static int polls;
    WaitPolicy policy;
    policy.poll = [] { return ++polls, true; };
    const auto polls_of = [&](uint32_t calls) {
        polls = 0;
        with_policy(policy, [&] {
            for (uint32_t i = 0; i < calls; ++i) poll_after_test();
        });
        return polls;
    };
    EXPECT_EQ(polls_of(10 * kTestsPerPoll), 0) << "there is nothing to make progress with";
    policy.posted = 1;
    EXPECT_EQ(polls_of(10 * kTestsPerPoll), 10);
    policy.posted = 0;
    policy.has_network = true;
    EXPECT_EQ(polls_of(10 * kTestsPerPoll), 10);
    policy.alone = true;
    EXPECT_EQ(polls_of(10), 10) << "nobody else does";
}

TEST(WaitPolicy, WaitsBeforeInitToo) {
    int looks = 0;
    wait_for_store("unit", &looks, [&] { return ++looks > 100; });
    EXPECT_EQ(looks, 101);
}

TEST(CountThisThread, CountsOnceAndUntilTheThreadEnds) {
    std::atomic<uint32_t> threads{0};
    WaitPolicy policy;
    policy.node_threads = &threads;
    std::thread([&] {
        wait_policy = &policy;
        count_this_thread();
        count_this_thread();
        EXPECT_EQ(threads.load(), 1u);
        EXPECT_EQ(policy.own_threads.load(), 1u);
        std::thread([&] {
            wait_policy = &policy;
            count_this_thread();
            EXPECT_EQ(threads.load(), 2u);
        }).join();
        EXPECT_EQ(threads.load(), 1u);
    }).join();
    EXPECT_EQ(threads.load(), 0u);
    EXPECT_EQ(policy.own_threads.load(), 0u);
}

// The counts of the node are shared memory: a child of this thread, whatever made it, is not the thread that was
// counted.
TEST(CountThisThread, ChildrenOfAForkAreNotCountedOut) {
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "it looks for leaks where a child ends, and takes what the parent's threads hold for such";
#endif
    void* const shared = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(shared, MAP_FAILED);
    auto* const threads = new (shared) std::atomic<uint32_t>(0);
    WaitPolicy policy;
    policy.node_threads = threads;
    fflush(nullptr);  // exit writes what is buffered
    std::thread([&] {
        wait_policy = &policy;
        count_this_thread();
        for (const bool plain : {true, false}) {
            const pid_t child =
                plain ? fork() : static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
            if (child == 0)
                exit(7);  // its thread-local objects are destroyed
            int status = 0;
            EXPECT_EQ(waitpid(child, &status, 0), child);
            EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7);
            EXPECT_EQ(threads->load(), 1u);
        }
    }).join();
    EXPECT_EQ(threads->load(), 0u);
    munmap(shared, 4096);
}

TEST(CountThisThread, DoesNothingWithoutAPolicyOrANode) {
    std::thread([] {
        count_this_thread();
        WaitPolicy policy;
        wait_policy = &policy;
        count_this_thread();
        EXPECT_EQ(policy.own_threads.load(), 0u);
    }).join();
}

}  // namespace
}  // namespace heddle::progress
