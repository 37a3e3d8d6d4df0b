// Requests posted to, waited for and merged by several threads of several PEs at once, with transfers that the
// background threads carry out. Data are plain memory, so ThreadSanitizer reports whoever reads before it may.
#include "job.h"

#include <shmemx.h>

#include <algorithm>
#include <random>

namespace heddle::test {
namespace {

// Just long enough to be left to another thread, and of no round size.
constexpr size_t kLongs = (256 * 1024 + 24) / sizeof(long);
constexpr int kRounds = 6;

class RequestsTest : public JobTest {
  protected:
    // Runs body(thread, partner, dest, source) on every thread of every PE: dest is the thread's own symmetric array,
    // which only its namesake on the PE before writes; source is private; partner is the next PE.
    template <class Body>
    void with_arrays(Body body) {
        setenv("HEDDLE_ASYNC_COPY", "always", 1);
        run_job([&](int pe) {
            long* all = symmetric<long>(kLongs * static_cast<size_t>(n_threads()));
            prepare(pe);
            run_threads([&](int thread) {
                std::vector<long> source(kLongs);
                body(thread, (pe + 1) % n_pes(), all + kLongs * static_cast<size_t>(thread), source);
            });
            shmem_barrier_all();
            finish(pe);
            shmem_free(all);
        });
        unsetenv("HEDDLE_ASYNC_COPY");
    }

    virtual void prepare(int) {}
    virtual void finish(int) {}
};

void fill(std::vector<long>& source, long value) {
    for (size_t i = 0; i < source.size(); ++i) source[i] = value + static_cast<long>(i);
}

// What partner's dest holds, as this PE reads it.
void expect_there(const long* dest, int partner, long value) {
    const auto* there = static_cast<const long*>(shmem_ptr(dest, partner));
    for (size_t i = 0; i < kLongs; ++i) ASSERT_EQ(there[i], value + static_cast<long>(i));
}

TEST_P(RequestsTest, PrivateOnesAreCompleteWhenWaitedFor) {
    with_arrays([&](int thread, int partner, long* dest, std::vector<long>& source) {
        for (long round = 1; round <= kRounds; ++round) {
            fill(source, round * 1000000 + thread);
            shmemx_request_t request = SHMEMX_REQUEST_NULL;
            shmemx_long_put_nbe(dest, source.data(), kLongs, partner, &request);
            ASSERT_NE(request, SHMEMX_REQUEST_NULL);
            if (round % 2 == 0) {
                while (!shmemx_request_test(&request)) {
                }
            } else {
                shmemx_request_wait(&request);
            }
            ASSERT_EQ(request, SHMEMX_REQUEST_NULL);
            expect_there(dest, partner, round * 1000000 + thread);
            fill(source, -1);  // may be used again: a late reader would be a race
            std::vector<long> back(kLongs);
            shmemx_long_get_nbe(back.data(), dest, kLongs, partner, &request);
            shmemx_request_wait(&request);
            for (size_t i = 0; i < kLongs; ++i) ASSERT_EQ(back[i], round * 1000000 + thread + static_cast<long>(i));
        }
    });
}

class SharedRequestTest : public RequestsTest {
  protected:
    void prepare(int pe) override { ASSERT_EQ(shmemx_request_allocate(&shared_[pe], SHMEMX_REQUEST_SHARED), 0); }
    void finish(int pe) override {
        shmemx_request_free(&shared_[pe]);
        ASSERT_EQ(shared_[pe], SHMEMX_REQUEST_NULL);
    }

    shmemx_request_t shared_[8] = {};
};

// All threads post to one request and all wait for it; each finds at least what it posted itself.
TEST_P(SharedRequestTest, ManyPostAndManyWait) {
    with_arrays([&](int thread, int partner, long* dest, std::vector<long>& source) {
        shmemx_request_t* request = &shared_[shmem_my_pe()];
        for (long round = 1; round <= kRounds; ++round) {
            fill(source, round * 1000000 + thread);
            shmemx_long_put_nbe(dest, source.data(), kLongs - 1, partner, request);
            shmemx_long_put_nbe(dest + kLongs - 1, source.data() + kLongs - 1, 1, partner, request);
            shmemx_request_wait(request);
            expect_there(dest, partner, round * 1000000 + thread);
        }
    });
}

// A thread that goes on posting does not hold up those that wait, and one request takes in those of all threads.
TEST_P(SharedRequestTest, TakesInThePrivateOnesOfAllThreads) {
    with_arrays([&](int thread, int partner, long* dest, std::vector<long>& source) {
        shmemx_request_t* request = &shared_[shmem_my_pe()];
        for (long round = 1; round <= kRounds; ++round) {
            fill(source, round * 1000000 + thread);
            shmemx_request_t own[2] = {};
            shmemx_long_put_nbe(dest + 1, source.data() + 1, kLongs - 1, partner, &own[0]);
            shmemx_long_put_nbe(dest, source.data(), 1, partner, &own[1]);
            shmemx_request_merge(request, 2, own);
            ASSERT_EQ(own[0], SHMEMX_REQUEST_NULL);
            ASSERT_EQ(own[1], SHMEMX_REQUEST_NULL);
            shmemx_request_wait(request);
            expect_there(dest, partner, round * 1000000 + thread);
        }
    });
}

// Another thread than the poster waits.
TEST_P(RequestsTest, MayBeHandedOver) {
    with_arrays([&](int thread, int partner, long* dest, std::vector<long>& source) {
        for (long round = 1; round <= kRounds / 2; ++round) {
            fill(source, round * 1000000 + thread);
            shmemx_request_t request = SHMEMX_REQUEST_NULL;
            shmemx_long_put_nbe(dest, source.data(), kLongs, partner, &request);
            thread_of_pe([&] {
                shmemx_request_wait(&request);
                expect_there(dest, partner, round * 1000000 + thread);
            }).join();
        }
    });
}

// The thread that posted ends; its transfer goes on, and another thread waits for it.
TEST_P(RequestsTest, OutliveTheThreadThatPosted) {
    with_arrays([&](int thread, int partner, long* dest, std::vector<long>& source) {
        shmemx_request_t request = SHMEMX_REQUEST_NULL;
        fill(source, thread);
        thread_of_pe([&] { shmemx_long_put_nbe(dest, source.data(), kLongs, partner, &request); }).join();
        shmemx_request_wait(&request);
        expect_there(dest, partner, thread);
    });
}

// Each thread has its context, and its quiet covers its own transfers while others have theirs.
TEST_P(RequestsTest, AreCompleteBehindAQuietOfTheirContext) {
    with_arrays([&](int thread, int partner, long* dest, std::vector<long>& source) {
        shmem_ctx_t ctx;
        ASSERT_EQ(shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx), 0);
        for (long round = 1; round <= kRounds; ++round) {
            fill(source, round * 1000000 + thread);
            shmemx_request_t request = SHMEMX_REQUEST_NULL;
            shmemx_ctx_long_put_nbe(ctx, dest, source.data(), kLongs, partner, &request);
            if (round % 3 == 0) {
                while (!shmemx_ctx_quiet_test(ctx)) {
                }
            } else if (round % 3 == 1) {
                shmem_ctx_quiet(ctx);
            } else {
                shmem_ctx_fence(ctx);
            }
            expect_there(dest, partner, round * 1000000 + thread);
            shmemx_request_wait(&request);
        }
        shmem_ctx_destroy(ctx);
    });
}

// The data are there when the target has seen the signal, whichever thread carried them.
TEST_P(RequestsTest, SignalBehindTheirData) {
    setenv("HEDDLE_ASYNC_COPY", "always", 1);
    run_job([&](int pe) {
        const auto threads = static_cast<size_t>(n_threads());
        long* all = symmetric<long>(kLongs * threads);
        uint64_t* signals = symmetric<uint64_t>(2 * threads);
        run_threads([&](int thread) {
            long* dest = all + kLongs * static_cast<size_t>(thread);
            uint64_t *arrived = signals + 2 * thread, *seen = arrived + 1;
            std::vector<long> source(kLongs);
            const int next = (pe + 1) % n_pes(), before = (pe + n_pes() - 1) % n_pes();
            for (uint64_t round = 1; round <= kRounds; ++round) {
                fill(source, static_cast<long>(round) * 100000 + pe);
                shmemx_request_t request = SHMEMX_REQUEST_NULL;
                shmemx_long_put_signal_nbe(dest, source.data(), kLongs, arrived, 1, SHMEM_SIGNAL_ADD, next, &request);
                shmem_signal_wait_until(arrived, SHMEM_CMP_EQ, round);
                for (size_t i = 0; i < kLongs; ++i)
                    ASSERT_EQ(dest[i], static_cast<long>(round) * 100000 + before + static_cast<long>(i));
                shmemx_request_wait(&request);
                shmem_signal_set(seen, round, before);  // its dest may be written again
                shmem_signal_wait_until(seen, SHMEM_CMP_EQ, round);
            }
        });
        shmem_barrier_all();
        shmem_free(signals);
        shmem_free(all);
    });
    unsetenv("HEDDLE_ASYNC_COPY");
}

// Random posts, waits, tests and merges of each thread on its own requests and a shared one; what was posted last to a
// place is there at the end.
TEST_P(SharedRequestTest, KeepUpWithAnySchedule) {
    const unsigned seed = std::random_device()();
    printf("seed %u\n", seed);
    with_arrays([&](int thread, int partner, long* dest, std::vector<long>& source) {
        std::mt19937 random(seed + static_cast<unsigned>(thread * 8 + shmem_my_pe()));
        shmemx_request_t* shared = &shared_[shmem_my_pe()];
        shmemx_request_t own[3] = {};
        const auto settle = [&] {
            for (shmemx_request_t& request : own) shmemx_request_wait(&request);
            shmemx_request_wait(shared);
        };
        long value = 0;
        for (int step = 0; step < 60; ++step) {
            shmemx_request_t* request = random() % 4 == 0 ? shared : &own[random() % 3];
            switch (random() % 6) {
                case 0:
                case 1:
                    settle();  // the place is written by one transfer at a time
                    fill(source, ++value);
                    shmemx_long_put_nbe(dest, source.data(), kLongs, partner, request);
                    break;
                case 2:
                    shmemx_request_wait_local(request);
                    break;
                case 3:
                    shmemx_request_test(request);
                    break;
                case 4:
                    shmemx_request_merge(shared, 2, own);
                    break;
                default:
                    shmemx_request_wait_any(3, own);
            }
        }
        settle();
        if (value > 0)
            expect_there(dest, partner, value);
    });
}

HEDDLE_FOR_ALL_SHAPES(RequestsTest);
HEDDLE_FOR_ALL_SHAPES(SharedRequestTest);

}  // namespace
}  // namespace heddle::test
