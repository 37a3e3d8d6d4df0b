/* What network_counts.py counts, of PEs on nodes of their own. Usage: network_counts PATTERN TIMES THREADS
 *
 *     p           pings and pongs of shmem_long_p
 *     put_signal  pings and pongs of a put with its signal
 *     stream      PE 0 puts TIMES words one by one, then waits for all
 *     bursts      PE 0 puts THREADS words one by one, TIMES times, each time in a session with a quiet behind it
 *     turns       PE 0 puts TIMES words one by one, and gets as many, through THREADS contexts in turns
 *     waiters     pings and pongs while THREADS threads of PE 1 wait for a word that changes last of all
 *     request_fence PE 0 puts TIMES words under one request, with a fence of it behind each
 *     quiet       THREADS threads of PE 0 do TIMES puts with a quiet each, all together
 *     requests    pings and pongs while THREADS threads of PE 1 wait for a request each: puts to PE 2, which is stopped
 *     collectives the same, with non-blocking barriers of THREADS teams, for which PE 0 comes last of all
 *     flood       PE 2 does TIMES fetching atomics on PE 1, which THREADS threads of PE 0 flood with puts and signals
 *                 until PE 2 has done them
 *
 * Of the threads that wait for requests, PE 1 writes how often they have slept, as the kernel counts.
 */
#define _GNU_SOURCE
#include <shmem.h>
#include <shmemx.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { kMostThreads = 256, kBytes = 64, kFewest = 4 };

static uint64_t ping, pong, end, words[kMostThreads];
static char data[kBytes];
static const char source[kBytes];
static long times;
static long stopped_pe; /* the process of PE 2 */
static uint64_t* words_in_heap;
static shmem_team_t teams[kMostThreads];
static atomic_long waits_slept;
static pthread_barrier_t all_begin;

static void send(uint64_t* to, uint64_t value, int with_data, int pe) {
    if (with_data)
        shmem_putmem_signal(data, source, kBytes, to, value, SHMEM_SIGNAL_SET, pe);
    else
        shmem_uint64_p(to, value, pe);
}

static void ping_pong(int with_data) {
    const int me = shmem_my_pe();
    for (uint64_t i = 1; i <= (uint64_t)times; ++i) {
        if (me == 0)
            send(&ping, i, with_data, 1);
        shmem_uint64_wait_until(me == 0 ? &pong : &ping, SHMEM_CMP_EQ, i);
        if (me == 1)
            send(&pong, i, with_data, 0);
    }
}

static void bursts(int n_words) {
    uint64_t* const heap = words_in_heap;
    for (long i = 0; i < times; ++i) {
        shmem_ctx_session_start(SHMEM_CTX_DEFAULT, SHMEM_CTX_SESSION_BATCH, NULL, 0);
        for (int word = 0; word < n_words; ++word) shmem_uint64_p(&heap[word], (uint64_t)i, 1);
        shmem_ctx_session_stop(SHMEM_CTX_DEFAULT);
        shmem_quiet();
    }
}

static void* wait_for_end(void* none) {
    pthread_barrier_wait(&all_begin);
    shmem_uint64_wait_until(&end, SHMEM_CMP_EQ, 1);
    return none;
}

static long sleeps_of_thread(void) {
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

static void wait_for_request(shmemx_request_t* request) {
    const long before = sleeps_of_thread();
    shmemx_request_wait(request);
    atomic_fetch_add(&waits_slept, sleeps_of_thread() - before);
}

static void* wait_for_put(void* word) {
    static const uint64_t one = 1;
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    shmem_uint64_p(word, one, 2); /* connects, while PE 2 answers */
    shmem_quiet();
    pthread_barrier_wait(&all_begin);
    pthread_barrier_wait(&all_begin); /* PE 2 is stopped */
    shmemx_uint64_put_nbe(word, &one, 1, 2, &request);
    wait_for_request(&request);
    return NULL;
}

static void* wait_for_barrier(void* word) {
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    shmemx_team_sync_nbe(teams[(uint64_t*)word - words], &request);
    pthread_barrier_wait(&all_begin);
    wait_for_request(&request);
    return NULL;
}

static void* put_and_quiet(void* word) {
    pthread_barrier_wait(&all_begin);
    for (long i = 1; i <= times; ++i) {
        shmem_uint64_p(word, (uint64_t)i, 1);
        shmem_quiet();
    }
    return NULL;
}

static void with_threads(int count, void* (*run)(void*), void (*meanwhile)(int)) {
    pthread_t threads[kMostThreads];
    pthread_barrier_init(&all_begin, NULL, (unsigned)count + 1);
    for (int i = 0; i < count; ++i) pthread_create(&threads[i], NULL, run, &words[i]);
    pthread_barrier_wait(&all_begin);
    if (meanwhile)
        meanwhile(0);
    for (int i = 0; i < count; ++i) pthread_join(threads[i], NULL);
}

static void ping_pong_and_end(int with_data) {
    ping_pong(with_data);
    shmem_uint64_p(&end, 1, 1); /* to itself: PE 1 runs this */
}

static int is_stopped(long process) {
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", process);
    FILE* const file = fopen(path, "r");
    if (file) {
        if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
            state = 0;
        fclose(file);
    }
    return state == 'T';
}

static void stop_and_ping_pong(int with_data) {
    shmem_uint64_p(&end, 1, 2);
    while (!is_stopped(stopped_pe)) usleep(1000);
    pthread_barrier_wait(&all_begin);
    shmem_uint64_p(&end, 1, 0);
    ping_pong(with_data);
    kill((pid_t)stopped_pe, SIGCONT);
}

static void ping_pong_and_let_come(int with_data) {
    ping_pong(with_data);
    shmem_uint64_p(&end, 1, 0);
}

static void report_sleeps(void) {
    fprintf(stderr, "waits_slept %ld of the threads that wait for requests [0 %ld]\n", waits_slept, waits_slept);
}

static void requests(int me, int threads) {
    if (me == 2) {
        shmem_long_p(&stopped_pe, getpid(), 1);
        shmem_uint64_wait_until(&end, SHMEM_CMP_EQ, 1);
        raise(SIGSTOP);
    } else if (me == 1) {
        shmem_long_wait_until(&stopped_pe, SHMEM_CMP_NE, 0);
        with_threads(threads, wait_for_put, stop_and_ping_pong);
        report_sleeps();
    } else {
        shmem_uint64_wait_until(&end, SHMEM_CMP_EQ, 1);
        ping_pong(0);
    }
}

static void collectives(int me, int threads) {
    for (int i = 0; i < threads; ++i) shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 2, NULL, 0, &teams[i]);
    shmem_barrier_all();
    if (me == 1) {
        with_threads(threads, wait_for_barrier, ping_pong_and_let_come);
        report_sleeps();
        return;
    }
    ping_pong(0);
    shmem_uint64_wait_until(&end, SHMEM_CMP_EQ, 1);
    for (int i = 0; i < threads; ++i) shmem_team_sync(teams[i]);
}

static void turns(int contexts) {
    static uint64_t got[kMostThreads];
    shmem_ctx_t all[kMostThreads];
    for (int i = 0; i < contexts; ++i) shmem_ctx_create(SHMEM_CTX_PRIVATE, &all[i]);
    for (long i = 0; i < times; ++i) shmem_ctx_uint64_p(all[i % contexts], &words[i % contexts], (uint64_t)i, 1);
    for (int i = 0; i < contexts; ++i) shmem_ctx_quiet(all[i]);
    for (long i = 0; i < times; ++i)
        shmem_ctx_uint64_get_nbi(all[i % contexts], &got[i % contexts], &words[i % contexts], 1, 1);
    for (int i = 0; i < contexts; ++i) shmem_ctx_destroy(all[i]);
}

static void request_fences(void) {
    static uint64_t values[kMostThreads];
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    for (long i = 0; i < times; ++i) {
        shmemx_uint64_put_nbe(&words_in_heap[i % kMostThreads], &values[i % kMostThreads], 1, 1, &request);
        shmemx_request_fence(&request);
    }
    shmemx_request_wait(&request);
}

static void* put_until_end(void* word) {
    uint64_t* const mine = word;
    pthread_barrier_wait(&all_begin);
    for (uint64_t i = 1; __atomic_load_n(&end, __ATOMIC_ACQUIRE) == 0; ++i)
        if (i % 4 == 0)
            shmem_putmem_signal_nbi(data, source, kBytes, mine, i, SHMEM_SIGNAL_SET, 1);
        else
            shmem_uint64_p(mine, i, 1);
    return NULL;
}

static void flood(int me, int threads) {
    if (me == 0)
        with_threads(threads, put_until_end, NULL);
    if (me == 1) {
        shmem_uint64_wait_until(&words[0], SHMEM_CMP_NE, 0); /* it has begun */
        shmem_uint64_p(&pong, 1, 2);
        shmem_uint64_wait_until(&end, SHMEM_CMP_EQ, 1);
    }
    if (me < 2)
        return;
    shmem_uint64_wait_until(&pong, SHMEM_CMP_EQ, 1);
    for (uint64_t i = 0; i < (uint64_t)times; ++i)
        if (shmem_uint64_atomic_fetch_inc(&ping, 1) != i)
            shmem_global_exit(3);
    for (int pe = 0; pe < 2; ++pe) shmem_uint64_p(&end, 1, pe);
}

int main(int argc, char** argv) {
    if (argc != kFewest)
        return 2;
    const char* const pattern = argv[1];
    times = atol(argv[2]);
    const int threads = atoi(argv[3]);
    int provided;
    /* A session is for programs without SHMEM_THREAD_MULTIPLE. */
    shmem_init_thread(strcmp(pattern, "bursts") == 0 ? SHMEM_THREAD_SINGLE : SHMEM_THREAD_MULTIPLE, &provided);
    const int me = shmem_my_pe();
    words_in_heap = shmem_calloc(kMostThreads, sizeof *words_in_heap); /* a barrier, too */
    if (strcmp(pattern, "stream") == 0) {
        for (long i = 0; me == 0 && i < times; ++i) shmem_uint64_p(&words[0], (uint64_t)i, 1);
        shmem_quiet();
    } else if (strcmp(pattern, "bursts") == 0) {
        if (me == 0)
            bursts(threads);
    } else if (strcmp(pattern, "request_fence") == 0) {
        if (me == 0)
            request_fences();
    } else if (strcmp(pattern, "turns") == 0) {
        if (me == 0)
            turns(threads);
    } else if (strcmp(pattern, "waiters") == 0 && me == 1) {
        with_threads(threads, wait_for_end, ping_pong_and_end);
    } else if (strcmp(pattern, "requests") == 0) {
        requests(me, threads);
    } else if (strcmp(pattern, "collectives") == 0) {
        collectives(me, threads);
    } else if (strcmp(pattern, "flood") == 0) {
        flood(me, threads);
    } else if (strcmp(pattern, "quiet") == 0) {
        if (me == 0)
            with_threads(threads, put_and_quiet, NULL);
    } else {
        ping_pong(strcmp(pattern, "put_signal") == 0);
    }
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
