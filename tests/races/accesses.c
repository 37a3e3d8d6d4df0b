/* Programs with one race each between a call and a load or store of the program, and their cured twins; compiled by
 * oshcc -fheddle-races. Arguments and marks: as in racy.c. Those of which one side is "none" are right both ways. */
#include <shmem.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

enum { kWords = 4096, kFew = 32 };

static long global[kWords];
static uint64_t signal_word;
static atomic_long flag;
static long* data;
static int me, n, cured;
static int first; /* the PE that begins in language_atomics */
static volatile long sink;
static atomic_int over;

static void put_few(int pe) {
    long source[kFew];
    for (int i = 0; i < kFew; ++i) source[i] = i;
    shmem_long_put(data + 1000, source, kFew, pe); /* first: load store copy fill in_a_thread in_a_loop */
}

static void load(void) {
    if (me == 0)
        put_few(1);
    if (cured)
        shmem_barrier_all();
    if (me == 1)
        sink = data[1003]; /* second: load */
}

static void store(void) {
    if (me == 1)
        data[1031] = 5; /* second: store */
    if (cured)
        shmem_barrier_all();
    if (me == 0)
        put_few(1);
}

static void copy(void) {
    long mine[kWords];
    if (me == 0)
        put_few(1);
    if (cured)
        shmem_barrier_all();
    if (me == 1)
        memcpy(mine, data, sizeof mine); /* second: copy */
    sink = mine[me];
}

static void fill(void) {
    if (me == 0)
        put_few(1);
    if (cured)
        shmem_barrier_all();
    if (me == 1)
        memset(data, 0, kWords * sizeof *data); /* second: fill */
}

static void* load_in_thread(void* nothing) {
    sink = data[1000]; /* second: in_a_thread */
    return nothing;
}

static void in_a_thread(void) {
    pthread_t thread;
    if (me == 0)
        put_few(1);
    if (cured)
        shmem_barrier_all();
    if (me == 1) {
        pthread_create(&thread, NULL, load_in_thread, NULL);
        pthread_join(thread, NULL);
    }
}

static void in_a_loop(void) {
    long sum = 0;
    if (me == 0)
        put_few(1);
    if (cured)
        shmem_barrier_all();
    for (int round = 0; round < 100 && me == 1; ++round)
        for (int i = 0; i < kWords; ++i) sum += data[i]; /* second: in_a_loop */
    sink = sum;
}

/* A word of 4 bytes beside those that are put. */
static void neighbour(void) {
    int* const words = (int*)data;
    if (me == 0)
        shmem_int_p(words + 1, 7, 1);
    if (me == 1) {
        words[0] = 5;
        sink = words[2];
    }
}

static void source_of_nbi(void) {
    static long source[kFew];
    shmem_long_put_nbi(data, source, kFew, (me + 1) % n); /* first: source_of_nbi */
    if (cured)
        shmem_quiet();
    source[kFew - 1] = 2; /* second: source_of_nbi */
    shmem_quiet();
}

/* The store begins ahead of the buffer, which is private. */
static void part_of_nbi(void) {
    union source {
        int halves[16];
        long words[8];
    }* const source = calloc(1, sizeof *source);
    shmem_int_put_nbi((int*)data, source->halves + 3, 1, (me + 1) % n); /* first: part_of_nbi */
    if (cured)
        shmem_quiet();
    source->words[1] = me; /* second: part_of_nbi */
    shmem_quiet();
    free(source);
}

static void dest_of_nbi(void) {
    static long dest[kFew];
    shmem_long_get_nbi(dest, data, kFew, (me + 1) % n); /* first: dest_of_nbi */
    if (cured)
        shmem_quiet();
    sink = dest[0]; /* second: dest_of_nbi */
    shmem_quiet();
}

static void last_word(void) {
    const long source[kFew] = {[kFew - 1] = 1};
    if (me == 0)
        shmem_long_put_signal(global, source, kFew, &signal_word, 1, SHMEM_SIGNAL_SET, 1); /* first: last_word */
    if (me == 1) {
        cured ? (void)shmem_signal_wait_until(&signal_word, SHMEM_CMP_EQ, 1)
              : shmem_long_wait_until(&global[kFew - 1], SHMEM_CMP_EQ, 1);
        sink = global[0]; /* second: last_word */
    }
}

static void through_a_pointer(void) {
    if (me == 0)
        data[8] = 3; /* first: through_a_pointer */
    if (cured)
        shmem_barrier_all();
    if (me == 1) {
        long* const there = shmem_ptr(data, 0);
        sink = there[8]; /* second: through_a_pointer */
    }
}

/* What atomics of the language order is not known: nothing is said. */
static void language_atomics(void) {
    if (me == first) {
        long* const there = shmem_ptr(data, first + 1);
        there[8] = 3;
        atomic_store((atomic_long*)shmem_ptr(&flag, first + 1), 1);
    }
    if (me == first + 1) {
        while (atomic_load(&flag) == 0) {
        }
        sink = data[8];
    }
}

/* The loads and stores of correct programs, between all kinds of calls. */
static void many_orders(void) {
    static long lock, counter, sum, part;
    for (int round = 1; round <= 20; ++round) {
        for (int i = 0; i < kFew; ++i) data[i] = round * me + i;
        shmem_barrier_all();
        long other[kFew];
        shmem_long_get(other, data, kFew, (me + 1) % n);
        for (int i = 0; i < kFew; ++i) sink = other[i] + data[i];
        shmem_set_lock(&lock);
        shmem_long_p(&counter, shmem_long_g(&counter, 0) + 1, 0);
        shmem_clear_lock(&lock);
        part = me;
        shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &sum, &part, 1);
        sink = sum;
        part = 0;
        shmem_long_put_signal(global, data, kFew, &signal_word, 1, SHMEM_SIGNAL_ADD, (me + 1) % n);
        shmem_signal_wait_until(&signal_word, SHMEM_CMP_EQ, (uint64_t)round);
        for (int i = 0; i < kFew; ++i) sink = global[i];
        shmem_long_put_nbi(data + 100, other, kFew, (me + 1) % n);
        shmem_quiet();
        other[0] = 0;
        shmem_barrier_all();
        for (int i = 0; i < kFew; ++i) data[100 + i] += 1;
        shmem_barrier_all();
    }
    sink = me == 0 ? counter : 0;
}

static volatile sig_atomic_t ticks;

static void tick(int number) {
    (void)number;
    ++ticks;
}

/* A handler's accesses to symmetric memory, in the midst of the search as well. */
static void in_a_handler(void) {
    const struct sigaction on_tick = {.sa_handler = tick, .sa_flags = SA_RESTART};
    const struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
    sigaction(SIGALRM, &on_tick, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    while (ticks < 2000) {
        for (int i = 0; i < kFew; ++i) data[i] = i;
        shmem_long_put_nbi(data + 100, data, kFew, (me + 1) % n);
        shmem_quiet();
    }
    setitimer(ITIMER_REAL, &never, NULL);
}

/* A thread that goes on where the program has ended its use of the library. */
static void* load_for_ever(void* nothing) {
    while (!atomic_load_explicit(&over, memory_order_relaxed)) sink = global[kWords - 1];
    return nothing;
}

static const struct {
    const char* name;
    void (*run)(void);
} kCases[] = {{"load", load},
              {"store", store},
              {"copy", copy},
              {"fill", fill},
              {"in_a_thread", in_a_thread},
              {"in_a_loop", in_a_loop},
              {"neighbour", neighbour},
              {"source_of_nbi", source_of_nbi},
              {"part_of_nbi", part_of_nbi},
              {"dest_of_nbi", dest_of_nbi},
              {"last_word", last_word},
              {"through_a_pointer", through_a_pointer},
              {"language_atomics", language_atomics},
              {"many_orders", many_orders},
              {"in_a_handler", in_a_handler}};

int main(int argc, char** argv) {
    int provided;
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    me = shmem_my_pe(), n = shmem_n_pes();
    data = shmem_calloc(kWords, sizeof *data);
    first = argc > 3 ? atoi(argv[3]) : 0;
    cured = argc > 2 && strcmp(argv[2], "cured") == 0;
    pthread_t thread;
    const int has_thread = argc > 1 && strcmp(argv[1], "to_the_end") == 0;
    if (has_thread)
        pthread_create(&thread, NULL, load_for_ever, NULL);
    for (size_t i = 0; i < sizeof kCases / sizeof *kCases; ++i)
        if (argc > 1 && strcmp(argv[1], kCases[i].name) == 0)
            kCases[i].run();
    shmem_barrier_all();
    printf("goes on\n");
    shmem_free(data);
    shmem_finalize();
    if (has_thread) {
        atomic_store(&over, 1);
        pthread_join(thread, NULL);
    }
    return 0;
}
