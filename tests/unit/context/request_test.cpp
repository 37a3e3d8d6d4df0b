#include "context/request.h"

#include "base/settings.h"

#include <gtest/gtest.h>
#include <thread>
#include <vector>

namespace heddle::context {
namespace {

constexpr base::Call kCall = {"shmemx_test", nullptr};

class RequestTest : public testing::Test {
  protected:
    RequestTest() {
        base::settings.check = false;
        start_requests();
    }
    ~RequestTest() override { base::settings.check = base::settings.observed = false; }

    static Request* shared() { return find_request(kCall, make_request(true)); }
};
using RequestDeathTest = RequestTest;

TEST_F(RequestTest, HandlesTellWhetherCompleteOperationsCount) {
    EXPECT_TRUE(reinterpret_cast<uintptr_t>(make_request(true)) & HEDDLE_REQUEST_SKIP_POST);
    base::settings.observed = true;
    EXPECT_FALSE(reinterpret_cast<uintptr_t>(make_request(true)) & HEDDLE_REQUEST_SKIP_POST);
}

TEST_F(RequestTest, NothingStandsBehindTheTwoConstants) {
    EXPECT_EQ(find_request(kCall, SHMEMX_REQUEST_NULL), nullptr);
    EXPECT_EQ(find_request(kCall, HEDDLE_REQUEST_COMPLETE), nullptr);
}

TEST_F(RequestTest, IsMadeForTheFirstOperationThatOutlastsItsCall) {
    shmemx_request_t req = HEDDLE_REQUEST_COMPLETE;
    Request* made = request_to_post(kCall, &req);
    ASSERT_NE(made, nullptr);
    EXPECT_NE(req, HEDDLE_REQUEST_COMPLETE);
    EXPECT_EQ(request_to_post(kCall, &req), made);
}

TEST_F(RequestTest, AWaitIsOverWhenAllBeforeItIsComplete) {
    Request* request = shared();
    EXPECT_TRUE(RequestWait(request).is_over());
    const uint32_t first = request->post(), second = request->post();
    RequestWait wait(request);
    EXPECT_FALSE(wait.is_over());
    request->complete(second);
    EXPECT_FALSE(wait.is_over());
    request->complete(first);
    EXPECT_TRUE(wait.is_over());
}

// What is posted while a thread waits does not keep it.
TEST_F(RequestTest, AWaitIsNotHeldUpByLaterPosts) {
    Request* request = shared();
    uint32_t before = request->post();
    RequestWait wait(request);
    EXPECT_FALSE(wait.is_over());
    std::vector<uint32_t> later;
    for (int i = 0; i < 5; ++i) later.push_back(request->post());
    EXPECT_FALSE(wait.is_over());
    request->complete(before);
    EXPECT_TRUE(wait.is_over());
    for (const uint32_t side : later) request->complete(side);
}

// Two at once: neither is over too early, whoever turns.
TEST_F(RequestTest, TwoWaitsEachSeeTheirOwn) {
    Request* request = shared();
    const uint32_t first = request->post();
    RequestWait one(request);
    EXPECT_FALSE(one.is_over());
    const uint32_t second = request->post();
    RequestWait two(request);
    EXPECT_FALSE(two.is_over());
    const uint32_t third = request->post();
    request->complete(first);
    EXPECT_TRUE(one.is_over());
    EXPECT_FALSE(two.is_over());
    request->complete(second);
    const bool over_early = two.is_over();  // allowed to take the third for its own, not to miss the second
    request->complete(third);
    EXPECT_TRUE(over_early || two.is_over());
}

TEST_F(RequestTest, APartThatWasMergedCompletesTheWhole) {
    Request *whole = shared(), *part = shared();
    const uint32_t outstanding = part->post();
    part->parent_side = whole->post();
    part->parent.store(whole);
    end_handle(kCall, part);
    EXPECT_FALSE(whole->is_quiet());
    part->complete(outstanding);
    EXPECT_TRUE(whole->is_quiet());
}

TEST_F(RequestTest, ObjectsComeBack) {
    std::vector<Request*> seen;
    for (int i = 0; i < 1000; ++i) {
        Request* request = shared();
        request->complete(request->post());
        end_handle(kCall, request);
        seen.push_back(request);
    }
    EXPECT_EQ(seen.front(), seen.back());
}

TEST_F(RequestTest, WaitsAndPostsOfManyThreads) {
    Request* request = shared();
    std::atomic<bool> stop{false};
    std::vector<std::thread> posters, waiters;
    for (int t = 0; t < 3; ++t) {
        posters.emplace_back([&] {
            while (!stop.load(std::memory_order_relaxed)) {
                const uint32_t first = request->post(), second = request->post();
                request->complete(first);
                request->complete(second);
            }
        });
    }
    // Each waiter posts one thing, which is complete when its wait is over, and only then.
    for (int t = 0; t < 3; ++t) {
        waiters.emplace_back([&] {
            for (int round = 0; round < 2000; ++round) {
                const uint32_t own = request->post();
                RequestWait wait(request);
                for (int look = 0; look < 5; ++look) ASSERT_FALSE(wait.is_over());
                request->complete(own);
                while (!wait.is_over()) std::this_thread::yield();
            }
        });
    }
    for (std::thread& waiter : waiters) waiter.join();
    stop = true;
    for (std::thread& poster : posters) poster.join();
    EXPECT_TRUE(request->is_quiet());
}

TEST_F(RequestDeathTest, AHandleThatHasEndedIsNamed) {
    const shmemx_request_t handle = make_request(false);
    end_handle({"shmemx_request_free", nullptr}, find_request(kCall, handle));
    EXPECT_EXIT(find_request(kCall, handle), testing::ExitedWithCode(1),
                "shmemx_test: request .* is used in shmemx_test, but has ended in shmemx_request_free");
    make_request(false);  // the same object, under another handle
    EXPECT_EXIT(find_request(kCall, handle), testing::ExitedWithCode(1), "has ended");
}

TEST_F(RequestDeathTest, AStrangeHandleIsNamed) {
    EXPECT_EXIT(find_request(kCall, reinterpret_cast<shmemx_request_t>(0x123456789000)), testing::ExitedWithCode(1),
                "request 0x123456789000 is none of this PE");
}

TEST_F(RequestDeathTest, TwoWhoPostAtOnceToAPrivateOneAreNamed) {
    base::settings.check = true;
    shmemx_request_t req = make_request(false);
    EXPECT_EXIT(
        {
            const Posting first({"shmemx_first", nullptr}, &req);
            const Posting second({"shmemx_second", nullptr}, &req);
        },
        testing::ExitedWithCode(1),
        "two threads post to one PRIVATE request at once, in shmemx_first and in shmemx_sec");
    shmemx_request_t many = make_request(true);
    const Posting first(kCall, &many), second(kCall, &many);
}

}  // namespace
}  // namespace heddle::context
