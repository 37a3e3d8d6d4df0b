/* Fences and quiets with nothing outstanding, first where the PE has one stream to another node, then where it has
 * kThreads of a context's stream sets and kContexts of other contexts. Their instructions are counted: run by
 * remote_order.py. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <shmem.h>

enum { kCalls = 1000, kThreads = 64, kContexts = 192 };

static long words[kThreads];

#define OPERATION(name, call)                         \
    __attribute__((noinline)) void op_##name(void) {  \
        __asm__ volatile("" ::: "memory");            \
        call;                                         \
    }                                                 \
    static void measure_##name(void) {                \
        for (int i = 0; i < kCalls; ++i) op_##name(); \
    }
OPERATION(nothing, )
OPERATION(fence_of_one, shmem_fence())
OPERATION(quiet_of_one, shmem_quiet())
OPERATION(fence_of_many, shmem_fence())
OPERATION(quiet_of_many, shmem_quiet())

static pthread_barrier_t all_have_put;

static void* put(void* word) {
    shmem_long_p(word, 1, 1);
    pthread_barrier_wait(&all_have_put);
    return NULL;
}

int main(void) {
    int provided;
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    shmem_ctx_t contexts[kContexts];
    if (shmem_my_pe() == 0) {
        shmem_long_p(&words[0], 1, 1);
        shmem_quiet();
        measure_nothing();
        measure_fence_of_one();
        measure_quiet_of_one();
        pthread_t threads[kThreads];
        pthread_barrier_init(&all_have_put, NULL, kThreads);
        for (int i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, put, &words[i]);
        for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
        for (int i = 0; i < kContexts; ++i) {
            shmem_ctx_create(0, &contexts[i]);
            shmem_ctx_long_p(contexts[i], &words[0], 1, 1);
            shmem_ctx_quiet(contexts[i]);
        }
        shmem_quiet();
        measure_fence_of_many();
        measure_quiet_of_many();
    }
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
