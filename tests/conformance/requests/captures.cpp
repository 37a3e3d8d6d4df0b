// What shmemx_request_begin and _end let inlined code put without the library: many words to one PE, waited for by the
// thread itself and by another one, between the two calls and behind them. A ring: each PE puts to the next.
#include "check.h"

#include <pthread.h>
#include <shmemx.h>
#include <algorithm>
#include <numeric>

using namespace conformance;

namespace {

constexpr long kWords = 3000;  // several of the network's messages
long *words, *flag;
long nothing[kWords], values[kWords];
int next;

void begin_round() {
    std::fill_n(words, kWords, -1);
    shmem_barrier_all();
}

// A thread puts words, and goes on to do so while another one looks at the request: all that was put before is there.
struct Capture {
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    pthread_barrier_t turn;

    void put(long first) {
        for (long i = first; i < kWords; i += 2) shmem_long_put_nbi(&words[i], &values[i], 1, next);
    }
    void check(long first) {
        static long got[kWords];
        shmem_long_get(got, words, kWords, next);
        for (long i = first; i < kWords; i += 2) CHECK_EQ(got[i], i);
    }
    void wait() {
        shmemx_request_wait(&request);
        shmemx_request_wait(&request);  // what it has ended is null
    }
    void merge() {
        shmemx_request_t whole = SHMEMX_REQUEST_NULL;
        shmemx_request_merge(&whole, 1, &request);
        CHECK(request == SHMEMX_REQUEST_NULL);
        shmemx_request_wait(&whole);
    }
    // The previous PE's words are there when its flag is.
    void fence(long first) {
        static long count;
        shmemx_request_fence(&request);
        values_of_flag[first] = ++count;
        shmemx_long_put_nbe(flag, &values_of_flag[first], 1, next, &request);
        shmem_long_wait_until(flag, SHMEM_CMP_GE, count);
        for (long i = first; i < kWords; i += 2) CHECK_EQ(words[i], i);
        shmem_barrier_all();  // the next one writes the flag
    }
    long values_of_flag[2];
};

void* put_in_turns(void* argument) {
    auto& capture = *static_cast<Capture*>(argument);
    shmemx_request_begin(&capture.request);
    for (const long first : {0, 1}) {
        capture.put(first);
        pthread_barrier_wait(&capture.turn);  // the other thread looks at the request, and may make it null
        pthread_barrier_wait(&capture.turn);
    }
    capture.put(0);
    shmemx_request_end(&capture.request);
    return nullptr;
}

void capture_and_look_elsewhere(const char* function, bool is_shared, void (*look)(Capture& capture, long first)) {
    subject = function;
    begin_round();
    Capture capture;
    if (is_shared)
        CHECK_EQ(shmemx_request_allocate(&capture.request, SHMEMX_REQUEST_SHARED), 0);
    pthread_barrier_init(&capture.turn, nullptr, 2);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, nullptr, put_in_turns, &capture), 0);
    for (const long first : {0, 1}) {
        pthread_barrier_wait(&capture.turn);
        look(capture, first);
        pthread_barrier_wait(&capture.turn);
    }
    pthread_join(thread, nullptr);
    shmemx_request_wait(&capture.request);
    CHECK_EQ(capture.request != SHMEMX_REQUEST_NULL, is_shared);
    capture.check(0);
    shmemx_request_free(&capture.request);
    pthread_barrier_destroy(&capture.turn);
    shmem_barrier_all();  // the next round writes the words
}

void capture_and_look_elsewhere() {
    const auto wait = [](Capture& capture, long first) {
        capture.wait();
        capture.check(first);
    };
    const auto merge = [](Capture& capture, long first) {
        capture.merge();
        capture.check(first);
    };
    const auto fence = [](Capture& capture, long first) { capture.fence(first); };
    for (const bool is_shared : {false, true}) {
        capture_and_look_elsewhere("a wait for a request that another thread's operations join", is_shared, wait);
        capture_and_look_elsewhere("a fence of a request that another thread's operations join", is_shared, fence);
    }
    capture_and_look_elsewhere("a merge of a request that another thread's operations join", false, merge);
}

// A thread ends between begin and end: what it has put is in the request.
void capture_and_end_thread() {
    subject = "a request that the operations of a thread that has ended join";
    begin_round();
    static Capture capture;
    pthread_t thread;
    const auto put = [](void*) -> void* {
        shmemx_request_begin(&capture.request);
        capture.put(0);
        return nullptr;
    };
    CHECK_EQ(pthread_create(&thread, nullptr, put, nullptr), 0);
    pthread_join(thread, nullptr);
    capture.wait();
    capture.check(0);
    shmem_barrier_all();
}
// Waits, tests and merges of the thread itself, between begin and end.
void capture_and_wait() {
    subject = "a wait between shmemx_request_begin and _end";
    begin_round();
    Capture capture;
    shmemx_request_begin(&capture.request);
    for (int way = 0; way < 4; ++way) {
        shmem_long_put(words, nothing, kWords, next);
        shmem_quiet();
        capture.put(way % 2);
        shmemx_request_t whole = SHMEMX_REQUEST_NULL;
        if (way == 1)
            while (!shmemx_request_test(&capture.request)) continue;
        else if (way == 2)
            shmemx_request_merge(&whole, 1, &capture.request);
        else
            shmemx_request_wait(&capture.request);
        shmemx_request_wait(&whole);
        capture.check(way % 2);
    }
    shmemx_request_end(&capture.request);
    shmemx_request_free(&capture.request);
    shmem_barrier_all();
}

}  // namespace

int main() {
    start("captures");
    next = (pe + 1) % n_pes;
    std::fill_n(nothing, kWords, -1);
    std::iota(values, values + kWords, 0);
    words = static_cast<long*>(shmem_malloc(kWords * sizeof *words));
    flag = static_cast<long*>(shmem_calloc(1, sizeof *flag));
    CHECK(words != nullptr && flag != nullptr);
    for (int round = 0; round < 5; ++round) {
        capture_and_look_elsewhere();
        capture_and_wait();
        capture_and_end_thread();
    }
    shmem_free(flag);
    shmem_free(words);
    return finish();
}
