/* What network_counts.py counts, of two PEs on two nodes. Usage: network_counts PATTERN TIMES THREADS
 *
 *     p           pings and pongs of shmem_long_p
 *     put_signal  pings and pongs of a put with its signal
 *     stream      PE 0 puts TIMES words one by one, then waits for all
 *     waiters     pings and pongs while THREADS threads of PE 1 wait for a word that changes last of all
 *     quiet       THREADS threads of PE 0 do TIMES puts with a quiet each, all together
 */
#include <shmem.h>

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMostThreads = 256, kBytes = 64, kFewest = 4 };

static uint64_t ping, pong, end, words[kMostThreads];
static char data[kBytes];
static const char source[kBytes];
static long times;
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

static void* wait_for_end(void* none) {
    pthread_barrier_wait(&all_begin);
    shmem_uint64_wait_until(&end, SHMEM_CMP_EQ, 1);
    return none;
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

int main(int argc, char** argv) {
    if (argc != kFewest)
        return 2;
    const char* const pattern = argv[1];
    times = atol(argv[2]);
    const int threads = atoi(argv[3]);
    int provided;
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    const int me = shmem_my_pe();
    shmem_barrier_all();
    if (strcmp(pattern, "stream") == 0) {
        for (long i = 0; me == 0 && i < times; ++i) shmem_uint64_p(&words[0], (uint64_t)i, 1);
        shmem_quiet();
    } else if (strcmp(pattern, "waiters") == 0 && me == 1) {
        with_threads(threads, wait_for_end, ping_pong_and_end);
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
