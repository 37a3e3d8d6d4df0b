// What a thread that waits for one of many requests costs the threads that apply messages, which ask for it.
#include "base/counters.h"
#include "context/request.h"
#include "os/clock.h"
#include "progress/engine.h"
#include "support/pes_as_threads.h"
#include "unit/becomes.h"
#include "unit/progress/each_instruction.h"

#include <shmem.h>
#include <shmemx.h>

#include <gtest/gtest.h>
#include <algorithm>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace heddle::context {
namespace {

#if HEDDLE_STOPS_AT_INSTRUCTIONS

// Handles that are asked about cost instructions; from then on the waiting thread looks itself. A message for nobody.
constexpr size_t kAsked = 64;
constexpr long kMostOfOne = 40, kMostBeside = 1000;

// The most instructions of one of many messages while a thread waits for one of so many requests.
long cost_of_a_message(size_t count) {
    constexpr base::Call kWaitCall = {"shmemx_test", nullptr};
    std::vector<shmemx_request_t> handles(count, SHMEMX_REQUEST_NULL);
    std::vector<uint32_t> sides;
    for (shmemx_request_t& handle : handles) {
        EXPECT_EQ(shmemx_request_allocate(&handle, SHMEMX_REQUEST_SHARED), 0);
        sides.push_back(find_request(kWaitCall, handle)->post());
    }
    size_t found = 0;
    std::thread waiting = test::thread_of_pe([&] { found = shmemx_request_wait_any(count, handles.data()); });
    long most = 0;
    const uint64_t sleeps = base::counters->sleeps.read();
    EXPECT_TRUE(becomes([&] { return base::counters->sleeps.read() != sleeps; }));
    for (int i = 0; i < 10; ++i) {
        os::sleep_ns(2 * os::kMillisecondNs);  // it comes to rest
        most = std::max(most, progress::instructions_of([] { progress::engine->on_messages(); }));
    }
    const size_t last = count - 1;
    find_request(kWaitCall, handles[last])->complete(sides[last]);
    progress::engine->on_messages();
    waiting.join();
    EXPECT_EQ(found, last);
    for (size_t i = 0; i < last; ++i) find_request(kWaitCall, handles[i])->complete(sides[i]);
    for (shmemx_request_t& handle : handles) shmemx_request_free(&handle);
    return most;
}

TEST(RequestWaits, AMessageCostsABoundedLookHoweverManyRequestsAreWaitedFor) {
    setenv("SHMEM_SYMMETRIC_SIZE", "1M", 1);
    test::run_pes(1, [](int) {
        shmem_init();
        for (const size_t count : {size_t{1}, kAsked, size_t{4096}}) {
            const long cost = cost_of_a_message(count);
            testing::Test::RecordProperty("requests_" + std::to_string(count), std::to_string(cost));
            EXPECT_LE(cost, static_cast<long>(std::min(count, kAsked)) * kMostOfOne + kMostBeside) << count;
            if (count == kAsked) {
                EXPECT_GE(cost, static_cast<long>(kAsked)) << "they are asked about";
            }
        }
        shmem_finalize();
    });
}

#endif

}  // namespace
}  // namespace heddle::context
