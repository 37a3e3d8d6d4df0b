// Sentences of the standard about the threads of a PE (sentences.cpp): an operation is the PE's, whichever thread
// calls; who blocks blocks alone, and another thread may end its wait.
#include "check.h"
#include "sentences.h"
#include "tables.h"

#include <pthread.h>

using namespace conformance;

namespace {

long word, words[3];
uint64_t signal_word;
long* made_by_another;

void* allocate_and_meet(void*) {
    subject = "collectives of another thread";
    static long one, sum;
    made_by_another = static_cast<long*>(shmem_calloc(10, sizeof(long)));
    CHECK(made_by_another);
    one = 1;
    CHECK_EQ(shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &sum, &one, 1), 0);
    CHECK_EQ(sum, n_pes);
    shmem_barrier_all();  // one thread of a PE is enough
    return nullptr;
}

// The heap is the PE's: what one thread allocates all may use, and free.
void any_thread_may_call() {
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, nullptr, allocate_and_meet, nullptr), 0);
    pthread_join(thread, nullptr);
    subject = "memory of another thread";
    shmem_long_atomic_add(&made_by_another[9], 4, (pe + 1) % n_pes);
    shmem_barrier_all();
    CHECK_EQ(made_by_another[9], 4);
    shmem_free(made_by_another);
}

// Ends the waits of the thread that waits, one after the other, and does other things in between.
void* end_waits(void*) {
    subject = "a thread beside one that waits";
    for (long turn = 1; turn <= 4; ++turn) {
        for (int i = 0; i < 50; ++i) {  // it is not held up
            shmem_long_atomic_inc(&words[2], (pe + 1) % n_pes);
            CHECK_EQ(shmem_team_my_pe(SHMEM_TEAM_WORLD), pe);
            int initialized = 0, provided = -1;
            shmem_query_initialized(&initialized);
            shmem_query_thread(&provided);
            CHECK(initialized == 1 && provided == SHMEM_THREAD_MULTIPLE);
        }
        shmem_quiet();
        if (turn == 1)
            shmem_long_atomic_set(&word, 1, pe);
        else if (turn == 2)
            shmem_long_atomic_inc(&words[1], pe);
        else if (turn == 3)
            shmem_long_atomic_add(&words[0], 5, pe);
        else
            shmem_signal_set(&signal_word, 9, pe);
    }
    return nullptr;
}

void another_thread_ends_a_wait() {
    subject = "waits that a thread of the PE ends";
    word = words[0] = words[1] = 0;
    signal_word = 0;
    shmem_barrier_all();
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, nullptr, end_waits, nullptr), 0);
    shmem_long_wait_until(&word, SHMEM_CMP_EQ, 1);
    CHECK_EQ(shmem_long_wait_until_any(words, 2, nullptr, SHMEM_CMP_EQ, 1), 1);
    shmem_long_wait_until_all(words, 2, nullptr, SHMEM_CMP_GE, 1);
    CHECK_EQ(words[0], 5);
    CHECK_EQ(shmem_signal_wait_until(&signal_word, SHMEM_CMP_NE, 0), 9);
    pthread_join(thread, nullptr);
    shmem_barrier_all();
    CHECK_EQ(words[2], 200);
    shmem_barrier_all();
}

}  // namespace

void conformance::sentences_of_threads() {
    words[2] = 0;
    shmem_barrier_all();
    any_thread_may_call();
    another_thread_ends_a_wait();
}
