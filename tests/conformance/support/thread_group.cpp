// The thread group of a PE (tables.h): threads that carry out collectives together, 1 to HEDDLE_TEST_THREADS (4) of
// them, as many as a stream of numbers of each PE says, so that PEs differ. HEDDLE_TEST_THREAD_GROUP: pthreads, cxx or openmp.
#include "check.h"
#include "completion.h"
#include "tables.h"

#include <pthread.h>
#include <atomic>
#include <cstdlib>
#include <thread>

using namespace conformance;

namespace {

constexpr int kMost = 4;
using Function = int (*)(const thread_group_call*, int, int);

struct Turn {
    Function function;
    const thread_group_call* call;
    int first;  // number of the main thread
    int threads;
    int number(int helper) const { return (first + helper) % threads; }
};
Turn turn;
std::atomic<uint32_t> opened[kMost];  // of each helper, 1 and up: turns that are its
std::atomic<int> running;
int results[kMost];

void help(int helper) {
    for (uint32_t done = 0;;) {
        opened[helper].wait(done, std::memory_order_acquire);
        done = opened[helper].load(std::memory_order_acquire);
        subject = "a thread of the thread group";
        results[helper] = turn.function(turn.call, turn.number(helper), turn.threads);
        if (running.fetch_sub(1, std::memory_order_acq_rel) == 1)
            running.notify_one();
    }
}

void* run_pthread(void* helper) {
    help(static_cast<int>(reinterpret_cast<intptr_t>(helper)));
    return nullptr;
}

bool crew_is(const char* kind) {
    const char* text = getenv("HEDDLE_TEST_THREAD_GROUP");
    return strcmp(text ? text : "pthreads", kind) == 0;
}

// The helpers live as long as the process.
void make_helpers() {
    for (intptr_t helper = 1; helper < kMost; ++helper) {
        pthread_t thread;
        if (crew_is("cxx"))
            std::thread(help, static_cast<int>(helper)).detach();
        else
            CHECK_EQ(pthread_create(&thread, nullptr, run_pthread, reinterpret_cast<void*>(helper)), 0);
    }
}

void run_with_helpers() {
    running.store(turn.threads - 1, std::memory_order_relaxed);
    for (int helper = 1; helper < turn.threads; ++helper) {
        opened[helper].fetch_add(1, std::memory_order_release);
        opened[helper].notify_one();
    }
    results[0] = turn.function(turn.call, turn.number(0), turn.threads);
    for (int left; (left = running.load(std::memory_order_acquire)) != 0;) running.wait(left);
}

void run_with_openmp() {
#ifdef _OPENMP
#pragma omp parallel for num_threads(turn.threads) schedule(static, 1)
    for (int i = 0; i < turn.threads; ++i) results[i] = turn.function(turn.call, turn.number(i), turn.threads);
#else
    fail(__FILE__, __LINE__, "compiled without OpenMP");
#endif
}

}  // namespace

shmemx_request_t* conformance_group_request;

namespace {

Function posting;
uint64_t waiting;  // a bit for each thread, by its number, that waits for the request itself

int post_and_wait(const thread_group_call* call, int thread, int nthreads) {
    const int result = posting(call, thread, nthreads);
    if (waiting >> thread & 1)
        shmemx_request_wait(conformance_group_request);
    return result;
}

}  // namespace

int conformance_posting_group(Function function, const thread_group_call* call) {
    static shmemx_request_t request = SHMEMX_REQUEST_NULL;
    static Random random = random_for(37, static_cast<uint64_t>(pe));
    static size_t way = 0;
    if (request == SHMEMX_REQUEST_NULL)
        CHECK_EQ(shmemx_request_allocate(&request, SHMEMX_REQUEST_SHARED), 0);
    conformance_group_request = &request;
    posting = function;
    waiting = random.next();
    const int result = conformance_thread_group(post_and_wait, call);
    complete_request(&request, true, way++ % kWaysByRequest);
    return result;
}

int conformance_thread_group(Function function, const thread_group_call* call) {
    static const bool with_openmp = crew_is("openmp");
    static const size_t most = number("HEDDLE_TEST_THREADS", kMost);
    static Random random = random_for(31, static_cast<uint64_t>(pe));
    static bool started = false;
    CHECK(most >= 1 && most <= kMost);
    if (!started && !with_openmp)
        make_helpers();
    started = true;
    turn = {function, call, 0, static_cast<int>(1 + random.below(most))};
    turn.first = static_cast<int>(random.below(static_cast<size_t>(turn.threads)));
    if (with_openmp)
        run_with_openmp();
    else
        run_with_helpers();
    for (int i = 1; i < turn.threads; ++i) CHECK_EQ(results[i], results[0]);
    return results[0];
}
