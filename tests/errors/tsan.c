/* tsan [SCENARIO...]: threads of a PE that order their plain accesses by the library alone, compiled with
 * -fsanitize=thread; all of them without an argument. ThreadSanitizer is to be silent, but in "race" and
 * "race_with_a_put", which are wrong. What must come of it is in test_tsan.py. */
#include <shmem.h>
#include <shmemx.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kThreads = 3, kTimes = 20, kLarge = 1 << 17 };

static int me, n_pes, next;

static void require(int condition, const char* what) {
    if (condition)
        return;
    fprintf(stderr, "PE %d: wrong: %s\n", me, what);
    abort();
}

/* Two threads of this PE at once. */
static void both(void* (*one)(void*), void* (*other)(void*)) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, one, NULL);
    pthread_create(&threads[1], NULL, other, NULL);
    for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
}

static void many(void* (*body)(void*)) {
    pthread_t threads[kThreads];
    for (intptr_t i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, body, (void*)i);
    for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
}

/* --- A context for each thread, made and gone again. */
static long counter;

static void* use_contexts(void* thread) {
    static const long options[] = {0, SHMEM_CTX_PRIVATE, SHMEM_CTX_SERIALIZED, SHMEM_CTX_NOSTORE};
    static long words[kThreads][8];
    for (int i = 0; i < kTimes; ++i) {
        shmem_ctx_t ctx;
        long own[8] = {i};
        require(shmem_ctx_create(options[i % 4], &ctx) == 0, "no context");
        shmem_ctx_long_atomic_inc(ctx, &counter, next);
        shmem_ctx_long_p(ctx, &words[(intptr_t)thread][1], i, next);
        shmem_ctx_long_put(ctx, &words[(intptr_t)thread][2], own, 5, next);
        shmem_ctx_quiet(ctx);
        shmem_ctx_long_get(ctx, own, &words[(intptr_t)thread][2], 5, next);
        shmem_ctx_destroy(ctx);
    }
    return NULL;
}
static void contexts(void) {
    many(use_contexts);
    shmem_barrier_all();
    require(counter == kThreads * kTimes, "contexts");
}

/* --- One thread writes and tells, in ways that each have a flag of their own; the other is told and reads. */
enum { kSignal, kSignalNbi, kFence, kQuiet, kAtomic, kAny, kTest, kFetched, kBack, kEcho, kWays };
static long data[kWays][64], source[64], other_source[64], flags[kWays];
static uint64_t signals[kWays];

static void write_data(int way) {
    for (int i = 0; i < 64; ++i) data[way][i] = way + i;
}
static void read_data(int way) {
    for (int i = 0; i < 64; ++i) require(data[way][i] == way + i, "told too early");
}
static void* tell(void* unused) {
    (void)unused;
    for (int i = 0; i < 64; ++i) source[i] = kSignal + i;
    shmem_long_put_signal(data[kSignal], source, 64, &signals[kSignal], 1, SHMEM_SIGNAL_SET, me);
    for (int i = 0; i < 64; ++i) other_source[i] = kSignalNbi + i;
    shmem_long_put_signal_nbi(data[kSignalNbi], other_source, 64, &signals[kSignalNbi], 1, SHMEM_SIGNAL_ADD, me);
    write_data(kFence);
    shmem_fence();
    shmem_long_p(&flags[kFence], 1, me);
    write_data(kQuiet);
    shmem_quiet();
    shmem_long_put(&flags[kQuiet], (const long[]){1}, 1, me);
    write_data(kAtomic);
    shmem_fence();
    shmem_long_atomic_set(&flags[kAtomic], 1, me);
    write_data(kAny);
    shmem_fence();
    shmem_long_atomic_add(&flags[kAny], 1, me);
    write_data(kTest);
    shmem_fence();
    shmem_long_atomic_swap(&flags[kTest], 1, me);
    write_data(kFetched);
    shmem_fence();
    shmem_uint64_atomic_set(&signals[kFetched], 1, me);
    write_data(kBack); /* the neighbour sends the flag back, which ThreadSanitizer does not see */
    shmem_fence();
    shmem_long_p(&flags[kBack], 1, next);
    return NULL;
}
static void* be_told(void* unused) {
    size_t index;
    (void)unused;
    shmem_signal_wait_until(&signals[kSignal], SHMEM_CMP_EQ, 1);
    read_data(kSignal);
    shmem_signal_wait_until(&signals[kSignalNbi], SHMEM_CMP_EQ, 1);
    read_data(kSignalNbi);
    shmem_long_wait_until(&flags[kFence], SHMEM_CMP_EQ, 1);
    read_data(kFence);
    shmem_long_wait_until_all(&flags[kFence], 2, NULL, SHMEM_CMP_EQ, 1);
    read_data(kQuiet);
    shmem_long_wait_until(&flags[kAtomic], SHMEM_CMP_NE, 0);
    read_data(kAtomic);
    index = shmem_long_wait_until_any(&flags[kAny], 1, NULL, SHMEM_CMP_GE, 1);
    require(index == 0, "the wrong one");
    read_data(kAny);
    while (!shmem_long_test(&flags[kTest], SHMEM_CMP_EQ, 1)) sched_yield();
    read_data(kTest);
    while (shmem_signal_fetch(&signals[kFetched]) == 0) sched_yield();
    read_data(kFetched);
    shmem_long_wait_until(&flags[kEcho], SHMEM_CMP_EQ, 1);
    read_data(kBack);
    return NULL;
}
static void* send_back(void* unused) {
    (void)unused;
    shmem_long_wait_until(&flags[kBack], SHMEM_CMP_EQ, 1);
    shmem_long_p(&flags[kEcho], 1, (me + n_pes - 1) % n_pes);
    return NULL;
}
static void waits(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, send_back, NULL);
    both(tell, be_told);
    pthread_join(thread, NULL);
    shmem_barrier_all();
}

/* --- Locks: the library's, and those that programs make of atomics. */
static long lock, spin, ticket, turn, count, spun, served;

static void* take_locks(void* unused) {
    (void)unused;
    for (int i = 0; i < kTimes; ++i) {
        if (i % 2 == 0)
            shmem_set_lock(&lock);
        else
            while (shmem_test_lock(&lock) != 0) sched_yield();
        ++count;
        shmem_clear_lock(&lock);
    }
    for (int i = 0; i < kTimes; ++i) {
        while (shmem_long_atomic_compare_swap(&spin, 0, 1, me) != 0) sched_yield();
        ++spun;
        shmem_fence();
        shmem_long_atomic_set(&spin, 0, me);
    }
    for (int i = 0; i < kTimes; ++i) {
        const long mine = shmem_long_atomic_fetch_inc(&ticket, me);
        while (shmem_long_atomic_fetch(&turn, me) != mine) sched_yield();
        ++served;
        shmem_fence();
        shmem_long_atomic_inc(&turn, me);
    }
    return NULL;
}
static void locks(void) {
    many(take_locks);
    require(count == kThreads * kTimes && spun == count && served == count, "locks");
    shmem_barrier_all();
}

/* --- Collectives: threads with a team each; all threads in one; posted ones, waited for by another thread. */
static shmem_team_t teams[kThreads];
static long sums[kThreads][16], parts[kThreads][16], spread[kThreads][16];
static long *large, *from;

static void* in_own_team(void* thread) {
    const intptr_t t = (intptr_t)thread;
    for (int i = 0; i < kTimes; ++i) {
        for (int k = 0; k < 16; ++k) parts[t][k] = k;
        shmem_long_sum_reduce(teams[t], sums[t], parts[t], 16);
        for (int k = 0; k < 16; ++k) require(sums[t][k] == k * n_pes, "a sum");
        shmem_long_broadcast(teams[t], spread[t], parts[t], 16, i % n_pes);
        shmem_team_sync(teams[t]);
    }
    return NULL;
}
static void* in_a_crew(void* thread) {
    const int t = (int)(intptr_t)thread;
    for (int i = 0; i < 3; ++i) {
        for (int k = t; k < kLarge; k += kThreads) from[k] = k + i;
        shmemx_long_sum_reduce_mt(SHMEM_TEAM_WORLD, large, from, kLarge, t, kThreads);
        for (int k = 0; k < kLarge; k += 7) require(large[k] == (long)(k + i) * n_pes, "a sum of many threads");
        shmemx_team_sync_mt(SHMEM_TEAM_WORLD, t, kThreads);
    }
    return NULL;
}
static shmemx_request_t request;
static void* wait_for_request(void* unused) {
    (void)unused;
    shmemx_request_wait(&request);
    for (int k = 0; k < kLarge; k += 7) require(large[k] == (long)k * n_pes, "a posted sum");
    return NULL;
}
static void collectives(void) {
    large = shmem_malloc(kLarge * sizeof(long));
    from = shmem_malloc(kLarge * sizeof(long));
    for (int i = 0; i < kThreads; ++i) shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n_pes, NULL, 0, &teams[i]);
    many(in_own_team);
    shmem_barrier_all();
    many(in_a_crew);
    for (int i = 0; i < 3; ++i) {
        pthread_t thread;
        for (int k = 0; k < kLarge; ++k) from[k] = k;
        request = SHMEMX_REQUEST_NULL;
        shmemx_request_allocate(&request, SHMEMX_REQUEST_PRIVATE);
        shmemx_long_sum_reduce_nbe(SHMEM_TEAM_WORLD, large, from, kLarge, &request);
        shmemx_long_sum_reduce_nbe(teams[0], sums[0], parts[0], 16, &request);
        shmemx_team_barrier_nbe(teams[1], &request);
        pthread_create(&thread, NULL, wait_for_request, NULL);
        pthread_join(thread, NULL);
    }
    for (int i = 0; i < kThreads; ++i) shmem_team_destroy(teams[i]);
    shmem_free(from);
    shmem_free(large);
}

/* --- Large transfers, which another thread may carry out. */
static void transfers(void) {
    char* const to = shmem_calloc(1, kLarge * 8);
    char* const at = shmem_malloc(kLarge * 8);
    char* const own = malloc(kLarge * 8);
    uint64_t* const signal = shmem_calloc(1, sizeof *signal);
    for (int i = 1; i <= 3; ++i) {
        shmemx_request_t all = SHMEMX_REQUEST_NULL;
        memset(own, i, kLarge * 8);
        shmem_putmem_nbi(to, own, kLarge * 8, next);
        shmem_quiet();
        memset(own, 0, kLarge * 8);
        shmem_barrier_all();
        require(to[0] == i && to[kLarge * 8 - 1] == i, "a put");
        shmemx_getmem_nbe(own, to, kLarge * 8, next, &all);
        shmemx_putmem_signal_nbe(at, to, kLarge * 8, signal, 1, SHMEM_SIGNAL_ADD, me, &all);
        shmem_signal_wait_until(signal, SHMEM_CMP_EQ, (uint64_t)i);
        require(at[kLarge] == i, "a put with a signal");
        shmemx_request_wait(&all);
        require(own[kLarge] == i, "a get");
        shmem_barrier_all();
    }
    free(own);
    shmem_free(signal);
    shmem_free(at);
    shmem_free(to);
}

/* --- Memory that one thread frees and another one gets. */
static void* allocate(void* unused) {
    long* const memory = shmem_malloc(1000);
    (void)unused;
    for (int i = 0; i < 125; ++i) memory[i] = i;
    shmem_free(memory);
    return NULL;
}
static uint64_t may_allocate;
static void* allocate_first(void* unused) {
    allocate(unused);
    shmem_fence();
    shmem_uint64_p(&may_allocate, 1, me);
    return NULL;
}
static void* allocate_behind(void* unused) {
    shmem_uint64_wait_until(&may_allocate, SHMEM_CMP_EQ, 1);
    return allocate(unused);
}
static void memory(void) {
    both(allocate_first, allocate_behind);
}

/* --- What is wrong, and to be said. */
static long raced;
static void* increment(void* unused) {
    (void)unused;
    for (int i = 0; i < 1000; ++i) {
        ++raced;
        if (i % 100 == 0)
            shmem_quiet();
    }
    return NULL;
}
static void race(void) {
    both(increment, increment);
}
static long put_to[64];
static void* put(void* unused) {
    (void)unused;
    for (int i = 0; i < 1000; ++i) shmem_long_put(put_to, source, 64, me);
    return NULL;
}
static void* read_unordered(void* unused) {
    long sum = 0;
    (void)unused;
    for (int i = 0; i < 1000; ++i) sum += put_to[i % 64];
    return (void*)sum;
}
static void race_with_a_put(void) {
    both(put, read_unordered);
}

static const struct {
    const char* name;
    void (*run)(void);
} scenarios[] = {{"contexts", contexts},   {"waits", waits},   {"locks", locks}, {"collectives", collectives},
                 {"transfers", transfers}, {"memory", memory}, {"race", race},   {"race_with_a_put", race_with_a_put}};

int main(int argc, char** argv) {
    int provided;
    require(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) == 0, "init");
    me = shmem_my_pe();
    n_pes = shmem_n_pes();
    next = (me + 1) % n_pes;
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; ++i) {
        int chosen = argc == 1 && strncmp(scenarios[i].name, "race", 4) != 0;
        for (int k = 1; k < argc; ++k) chosen |= strcmp(argv[k], scenarios[i].name) == 0;
        if (chosen)
            scenarios[i].run();
    }
    shmem_finalize();
    printf("survived\n");
    return 0;
}
