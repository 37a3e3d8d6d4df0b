// Locks: one holder at a time among PEs and their threads, what is written under a lock is seen by the next holder,
// first come first served, test_lock never waits, many locks at once, in heap and static data; a free lock is 0
// everywhere.
#include "check.h"

#include <pthread.h>
#include <shmemx.h>
#include <unistd.h>
#include <ctime>

using namespace conformance;

namespace {

constexpr int kThreads = 3;
constexpr int kLocks = 41;
constexpr uint64_t kTimes = 60;  // per thread

struct Guarded {
    long lock;
    uint64_t count, inside, half_a, half_b;
};
Guarded static_guarded[kLocks];
Guarded* heap_guarded;
int threads = 1;

// Home of all data: PE 0.
void hold(Guarded* guarded, bool polls, Random& random) {
    if (polls) {
        while (shmem_test_lock(&guarded->lock) != 0) sched_yield();
    } else {
        shmem_set_lock(&guarded->lock);
    }
    CHECK_EQ(shmem_uint64_atomic_fetch_inc(&guarded->inside, 0), 0);
    const uint64_t count = shmem_uint64_g(&guarded->count, 0);
    CHECK_EQ(shmem_uint64_g(&guarded->half_a, 0), count * 3);
    CHECK_EQ(shmem_uint64_g(&guarded->half_b, 0), count * 7);
    shmem_uint64_p(&guarded->half_a, (count + 1) * 3, 0);
    if (random.below(8) == 0)
        sched_yield();
    shmem_uint64_p(&guarded->half_b, (count + 1) * 7, 0);
    shmem_uint64_p(&guarded->count, count + 1, 0);
    CHECK_EQ(shmem_test_lock(&guarded->lock) != 0, 1);  // held, by whomever
    CHECK_EQ(shmem_uint64_atomic_fetch_add(&guarded->inside, ~uint64_t{0}, 0), 1);
    shmem_clear_lock(&guarded->lock);
}

struct Worker {
    Guarded* guarded;
    int locks;
    int number;
};

void* work(void* argument) {
    const Worker& worker = *static_cast<Worker*>(argument);
    Random random = random_for(static_cast<uint64_t>(pe), static_cast<uint64_t>(worker.number),
                               static_cast<uint64_t>(worker.locks));
    for (uint64_t i = 0; i < kTimes; ++i)
        hold(&worker.guarded[random.below(static_cast<size_t>(worker.locks))], random.below(4) == 0, random);
    return nullptr;
}

void exclusion(Guarded* guarded, int locks) {
    subject = "mutual exclusion";
    pthread_t handles[kThreads];
    Worker workers[kThreads];
    for (int i = 0; i < threads; ++i) {
        workers[i] = {guarded, locks, i};
        CHECK_EQ(pthread_create(&handles[i], nullptr, work, &workers[i]), 0);
    }
    for (int i = 0; i < threads; ++i) pthread_join(handles[i], nullptr);
    shmem_barrier_all();
    uint64_t sum = 0;
    for (int i = 0; i < locks; ++i) {
        sum += shmem_uint64_g(&guarded[i].count, 0);
        for (int other = 0; other < n_pes; ++other) CHECK_EQ(shmem_long_g(&guarded[i].lock, other), 0);
    }
    CHECK_EQ(sum, kTimes * static_cast<uint64_t>(n_pes * threads));
    shmem_barrier_all();
    memset(static_cast<void*>(guarded), 0, sizeof *guarded * static_cast<size_t>(locks));
    shmem_barrier_all();
}

// Makes progress meanwhile: on another node a PE has asked for a lock when the lock's home has taken the message, and
// under HEDDLE_PROGRESS=manual no other thread of the home takes it.
void nap_ms(long ms) {
    const auto now_ms = [] {
        timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return now.tv_sec * 1000 + now.tv_nsec / 1000000;
    };
    for (const long end = now_ms() + ms; now_ms() < end; usleep(500)) shmemx_progress();
}

// PE 0 holds the lock while the others queue up, one well after the other; whether they got it in that order.
bool in_order(int step_ms) {
    subject = "first come, first served";
    static long lock;
    static int order, tickets[64];
    if (pe == 0)
        shmem_set_lock(&lock);
    shmem_barrier_all();
    if (pe == 0) {
        CHECK_EQ(shmem_test_lock(&lock), 1);
        nap_ms(step_ms * (n_pes + 2));
        shmem_clear_lock(&lock);
    } else {
        CHECK_EQ(shmem_test_lock(&lock), 1);
        nap_ms(step_ms * (n_pes - pe));  // the last PE comes first
        shmem_set_lock(&lock);
        const int mine = shmem_int_g(&order, 0);
        shmem_int_p(&tickets[mine], pe, 0);
        shmem_int_p(&order, mine + 1, 0);
        shmem_clear_lock(&lock);
    }
    shmem_barrier_all();
    static int sorted;
    if (pe == 0) {
        CHECK_EQ(order, n_pes - 1);
        sorted = 1;
        for (int i = 0; i < n_pes - 1; ++i) sorted = sorted && tickets[i] == n_pes - 1 - i;
        order = 0;
    }
    shmem_barrier_all();
    const bool all_see = shmem_int_g(&sorted, 0) != 0;
    shmem_barrier_all();
    return all_see;
}

// Several held at once, let go in another order; test_lock takes a free one.
void nested(Guarded* guarded) {
    subject = "several locks";
    for (int round = 0; round < 20; ++round) {
        for (int i = 0; i < 6; ++i) shmem_set_lock(&guarded[i].lock);  // the same order everywhere: no deadlock
        const uint64_t count = shmem_uint64_g(&guarded[0].count, 0);
        shmem_uint64_p(&guarded[0].count, count + 1, 0);
        for (int i : {3, 0, 5, 1, 4, 2}) shmem_clear_lock(&guarded[i].lock);
    }
    shmem_barrier_all();
    CHECK_EQ(shmem_uint64_g(&guarded[0].count, 0), 20 * n_pes);
    shmem_barrier_all();
    if (pe == 0)
        guarded[0].count = 0;
    // Each its own lock, free: test_lock takes it, and says that it is held from then on.
    CHECK_EQ(shmem_test_lock(&guarded[10 + pe].lock), 0);
    CHECK_EQ(shmem_test_lock(&guarded[10 + pe].lock), 1);
    shmem_barrier_all();
    CHECK_EQ(shmem_test_lock(&guarded[10 + (pe + 1) % n_pes].lock), 1);
    shmem_barrier_all();
    shmem_clear_lock(&guarded[10 + pe].lock);
    shmem_barrier_all();
}

}  // namespace

int main() {
    start("locks");
    heap_guarded = static_cast<Guarded*>(shmem_calloc(kLocks, sizeof(Guarded)));
    CHECK(heap_guarded && n_pes <= 16);
    for (Guarded* guarded : {heap_guarded, static_guarded}) {
        for (threads = 1; threads <= kThreads; threads += 2) {
            exclusion(guarded, 1);
            exclusion(guarded, kLocks);
        }
        nested(guarded);
    }
    // A loaded machine may end two naps in another order than they began, unless they are far apart.
    bool sorted = false;
    for (int step_ms = 30; step_ms < 3000 && !sorted; step_ms *= 2) sorted = in_order(step_ms);
    CHECK(sorted);
    return finish();
}
