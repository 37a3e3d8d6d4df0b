// Fiber: work that leaves its thread where it waits, and goes on later, maybe on another one; what it finds again then,
// and what it leaves alone. The presets asan and tsan see whether the sanitizers can follow it.
#include "unit/progress/fibers.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

// gcc's and clang's ways of saying so.
#if defined(__has_feature)
#define TEST_HAS_FEATURE(x) __has_feature(x)
#else
#define TEST_HAS_FEATURE(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || TEST_HAS_FEATURE(address_sanitizer)
#define TEST_ASAN
#endif
#if defined(__SANITIZE_THREAD__) || TEST_HAS_FEATURE(thread_sanitizer)
#define TEST_TSAN
#endif

#if defined(TEST_ASAN)
extern "C" const char* __asan_default_options() {
    return "detect_stack_use_after_return=1";
}
#endif

namespace heddle::progress {
namespace {

long thread_number() {
    return syscall(SYS_gettid);
}

TEST(Fiber, RunsUntilItWaitsAndGoesOn) {
    Fiber fiber;
    EXPECT_TRUE(fiber.is_over());
    EXPECT_EQ(Fiber::current(), nullptr);
    std::string steps;
    bool may_go_on = false;
    auto condition = [&] { return may_go_on; };
    auto body = [&] {
        EXPECT_EQ(Fiber::current(), &fiber);
        steps += 'a';
        fiber.wait(condition);
        EXPECT_EQ(Fiber::current(), &fiber);
        steps += 'b';
    };
    ASSERT_TRUE(start(fiber, body));
    EXPECT_EQ(steps, "") << "begins with the first resume";
    EXPECT_FALSE(fiber.is_over());
    resume_when_ready(fiber);
    EXPECT_EQ(steps, "a");
    EXPECT_EQ(Fiber::current(), nullptr);
    EXPECT_FALSE(fiber.is_over());
    EXPECT_FALSE(fiber.is_ready());
    may_go_on = true;
    resume_when_ready(fiber);
    EXPECT_EQ(steps, "ab");
    EXPECT_TRUE(fiber.is_over());
    EXPECT_EQ(Fiber::current(), nullptr);
}

TEST(Fiber, GoesOnOnOtherThreads) {
    constexpr int kMoves = 20;
    Fiber fiber;
    std::vector<long> threads;
    bool may_go_on = false;
    auto condition = [&] { return may_go_on; };
    auto body = [&] {
        int kept[kMoves] = {};
        for (int i = 0; i < kMoves; ++i) {
            kept[i] = i;
            threads.push_back(thread_number());
            may_go_on = false;
            fiber.wait(condition);
            EXPECT_EQ(Fiber::current(), &fiber);
        }
        for (int i = 0; i < kMoves; ++i) EXPECT_EQ(kept[i], i);
    };
    ASSERT_TRUE(start(fiber, body));
    long resumer = 0;
    for (int i = 0; i < kMoves; ++i) {
        on_another_thread([&] {
            EXPECT_EQ(Fiber::current(), nullptr);
            resumer = thread_number();
            resume_when_ready(fiber);
            EXPECT_EQ(Fiber::current(), nullptr);
            EXPECT_EQ(thread_number(), resumer);
        });
        EXPECT_EQ(threads.back(), resumer);
        may_go_on = true;
    }
    resume_when_ready(fiber);
    EXPECT_TRUE(fiber.is_over());
    EXPECT_EQ(threads.size(), static_cast<size_t>(kMoves));
}

// A condition may be true once alone, and may do something: who has been told so goes on.
TEST(Fiber, AConditionThatWasTrueIsNotAskedAgain) {
    Fiber fiber;
    int asked = 0;
    auto third_time = [&] { return ++asked == 3; };
    auto body = [&] { fiber.wait(third_time); };
    ASSERT_TRUE(start(fiber, body));
    resume_when_ready(fiber);
    EXPECT_EQ(asked, 1) << "by the fiber itself";
    EXPECT_FALSE(fiber.is_ready());
    EXPECT_TRUE(fiber.is_ready());
    EXPECT_TRUE(fiber.is_ready());
    fiber.resume();
    EXPECT_EQ(asked, 3);
    EXPECT_TRUE(fiber.is_over());
}

TEST(Fiber, DoesNotLeaveWhereTheConditionHolds) {
    Fiber fiber;
    int asked = 0;
    auto holds = [&] { return ++asked > 0; };
    auto body = [&] {
        for (int i = 0; i < 10; ++i) fiber.wait(holds);
    };
    ASSERT_TRUE(start(fiber, body));
    resume_when_ready(fiber);
    EXPECT_TRUE(fiber.is_over());
    EXPECT_EQ(asked, 10);
}

TEST(Fiber, WorksInARowRunOnOneStack) {
    Fiber fiber;
    std::vector<void*> frames;
    bool may_go_on = false;
    auto condition = [&] { return may_go_on; };
    auto body = [&] {
        frames.push_back(__builtin_frame_address(0));
        fiber.wait(condition);
    };
    for (int i = 0; i < 5000; ++i) {
        may_go_on = false;
        ASSERT_TRUE(start(fiber, body));
        resume_when_ready(fiber);
        ASSERT_FALSE(fiber.is_over());
        may_go_on = true;
        resume_when_ready(fiber);
        ASSERT_TRUE(fiber.is_over());
        ASSERT_EQ(frames.back(), frames.front()) << "work " << i;
    }
    EXPECT_EQ(frames.size(), 5000u);
}

TEST(Fiber, OneResumesAnotherAndEachWaitsByItself) {
    Fiber outer, inner;
    bool outer_may = false, inner_may = false;
    std::string steps;
    auto outer_condition = [&] { return outer_may; };
    auto inner_condition = [&] { return inner_may; };
    auto inner_body = [&] {
        EXPECT_EQ(Fiber::current(), &inner);
        steps += '1';
        inner.wait(inner_condition);
        EXPECT_EQ(Fiber::current(), &inner);
        steps += '2';
    };
    auto outer_body = [&] {
        steps += 'a';
        inner.resume();
        EXPECT_EQ(Fiber::current(), &outer);
        steps += 'b';
        outer.wait(outer_condition);
        EXPECT_EQ(Fiber::current(), &outer);
        steps += 'c';
        resume_when_ready(inner);
        EXPECT_EQ(Fiber::current(), &outer);
        steps += 'd';
    };
    ASSERT_TRUE(start(inner, inner_body) && start(outer, outer_body));
    resume_when_ready(outer);
    EXPECT_EQ(Fiber::current(), nullptr);
    EXPECT_EQ(steps, "a1b");
    outer_may = inner_may = true;
    on_another_thread([&] { resume_when_ready(outer); });
    EXPECT_EQ(steps, "a1bc2d");
    EXPECT_TRUE(outer.is_over() && inner.is_over());

    // The one that a fiber has resumed goes on without it.
    outer_may = inner_may = false;
    steps.clear();
    ASSERT_TRUE(start(inner, inner_body) && start(outer, outer_body));
    resume_when_ready(outer);
    inner_may = true;
    resume_when_ready(inner);
    EXPECT_EQ(steps, "a1b2");
    ASSERT_TRUE(start(inner, inner_body));
    outer_may = true;
    resume_when_ready(outer);
    EXPECT_EQ(steps, "a1b2c12d");
}

TEST(Fiber, HundredsAreUnderWayAtOnce) {
    constexpr size_t kFibers = 300;
    std::vector<Fiber> fibers(kFibers);
    bool may_go_on = false;
    size_t ended = 0;
    auto condition = [&] { return may_go_on; };
    auto body = [&] {
        Fiber* const self = Fiber::current();
        self->wait(condition);
        EXPECT_EQ(Fiber::current(), self);
        ++ended;
    };
    for (Fiber& fiber : fibers) {
        ASSERT_TRUE(start(fiber, body));
        resume_when_ready(fiber);
    }
    EXPECT_EQ(ended, 0u);
    may_go_on = true;
    for (Fiber& fiber : fibers) resume_when_ready(fiber);
    EXPECT_EQ(ended, kFibers);
}

// --- The stack

// So many frames of a bit more than 1 KiB; returns a sum that needs them all.
__attribute__((noinline)) int go_deep(int frames) {
    volatile char some[1024];
    for (size_t i = 0; i < sizeof some; i += 64) some[i] = static_cast<char>(frames);
    if (frames == 0)
        return 0;
    const int deeper = go_deep(frames - 1);
    return deeper + (some[0] == static_cast<char>(frames) && some[960] == some[0]);
}

TEST(Fiber, AStackHoldsWhatItSays) {
    constexpr int kFrames = static_cast<int>(Fiber::kStackBytes * 3 / 4 / 1200);
    Fiber fiber;
    int sum = 0;
    bool may_go_on = false;
    auto condition = [&] { return may_go_on; };
    auto body = [&] {
        sum = go_deep(kFrames);
        fiber.wait(condition);
        sum += go_deep(kFrames);
    };
    ASSERT_TRUE(start(fiber, body));
    fiber.resume();
    EXPECT_EQ(sum, kFrames);
    may_go_on = true;
    ASSERT_TRUE(fiber.is_ready());
    on_another_thread([&] { fiber.resume(); });
    EXPECT_EQ(sum, 2 * kFrames);
}

uintptr_t end_of_stack;

void tell_where(int, siginfo_t* info, void*) {
    constexpr uintptr_t kGuardBytes = 4096;
    const auto at = reinterpret_cast<uintptr_t>(info->si_addr);
    const uintptr_t begin = end_of_stack - Fiber::kStackBytes;
    const bool at_guard = at < begin && at >= begin - kGuardBytes;
    const char* const text = at_guard ? "at the guard page\n" : "elsewhere\n";
    [[maybe_unused]] const ssize_t written = write(2, text, strlen(text));
    _exit(3);
}

void overflow() {
    alignas(16) static char apart[64 * 1024];
    const stack_t stack = {apart, 0, sizeof apart};
    sigaltstack(&stack, nullptr);
    struct sigaction action = {};
    action.sa_sigaction = tell_where;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, nullptr);
    Fiber fiber;
    auto body = [] {
        constexpr uintptr_t kPageBytes = 4096;
        end_of_stack = (reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) + kPageBytes - 1) & -kPageBytes;
        go_deep(1 << 30);
    };
    start(fiber, body);
    fiber.resume();
}

TEST(FiberDeathTest, AStackThatOverflowsEndsTheProcessAtItsGuardPage) {
    EXPECT_EXIT(overflow(), testing::ExitedWithCode(3), "at the guard page");
}

// --- Sanitizers

#if defined(TEST_ASAN)
volatile int* address_of_a_local;

__attribute__((noinline)) void keep_a_local() {
    volatile int local = 1;
    address_of_a_local = &local;
    asm volatile("" ::: "memory");
}

// A fiber's own dead locals are told from its live ones, also when it has been away.
TEST(FiberDeathTest, AddressSanitizerSeesAUseAfterReturn) {
    Fiber fiber;
    bool may_go_on = false;
    auto condition = [&] { return may_go_on; };
    auto body = [&] {
        volatile int live = 2;
        volatile int* const address = &live;
        keep_a_local();
        fiber.wait(condition);
        EXPECT_EQ(*address, 2);
        EXPECT_DEATH(*address_of_a_local = 3, "stack-use-after-return");
        EXPECT_EQ(*address, 2);
    };
    ASSERT_TRUE(start(fiber, body));
    fiber.resume();
    may_go_on = true;
    ASSERT_TRUE(fiber.is_ready());
    fiber.resume();
    EXPECT_TRUE(fiber.is_over());
}
#endif

#if defined(TEST_TSAN)
// Many times: ThreadSanitizer does not see every race.
void race(bool ordered) {
    for (int round = 0; round < 50; ++round) {
        Fiber fiber;
        int shared = 0;
        std::atomic<bool> done{false};
        auto body = [&] {
            shared = 1;
            done.store(true, ordered ? std::memory_order_release : std::memory_order_relaxed);
        };
        start(fiber, body);
        std::thread other([&] { fiber.resume(); });
        while (!done.load(ordered ? std::memory_order_acquire : std::memory_order_relaxed)) std::this_thread::yield();
        shared = 2;
        other.join();
    }
    exit(0);
}

TEST(FiberDeathTest, ThreadSanitizerSeesARaceOfAFiber) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(race(false), testing::ExitedWithCode(66), "data race");
    EXPECT_EXIT(race(true), testing::ExitedWithCode(0), "");
}
#endif

}  // namespace
}  // namespace heddle::progress
