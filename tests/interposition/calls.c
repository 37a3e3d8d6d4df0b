/* Calls whose numbers are known: 7 shmem_long_p, 5 shmem_ctx_double_g, 3 shmem_putmem, 2 shmem_int_atomic_fetch_add,
 * 4 shmem_longdouble_p, of each of THREADS threads of each PE. Says what does not come out as it should. calls THREADS */
#include <pthread.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

enum { kThreads = 16 };
static long word[kThreads][7];
static double number[kThreads];
static long double wide[kThreads][4];
static char text[kThreads][3][40];
static int sum;
static int me, n, right;
static int wrong;

static void want(const char* what, int is_right) {
    if (!is_right) {
        printf("PE %d: wrong: %s\n", me, what);
        wrong = 1;
    }
}

static void* call_all(void* thread) {
    const int t = (int)(size_t)thread;
    char source[40], back[40];
    for (int i = 0; i < 40; ++i) source[i] = (char)(t + i);
    for (int i = 0; i < 7; ++i) shmem_long_p(&word[t][i], 100 * t + i, right);
    for (int i = 0; i < 5; ++i)
        want("shmem_ctx_double_g", shmem_ctx_double_g(SHMEM_CTX_DEFAULT, &number[t], right) == right + 0.5 * t);
    for (int i = 0; i < 3; ++i) shmem_putmem(text[t][i], source, sizeof source, right);
    for (int i = 0; i < 2; ++i) want("shmem_int_atomic_fetch_add", shmem_int_atomic_fetch_add(&sum, 3, 0) % 3 == 0);
    for (int i = 0; i < 4; ++i)
        shmem_longdouble_p(&wide[t][i], i + 0.25L * t, right); /* 16 bytes: no register of integers */
    shmem_quiet();
    shmem_getmem(back, text[t][2], sizeof back, right); /* what this thread has put */
    for (int i = 0; i < 40; ++i) want("shmem_getmem", back[i] == source[i]);
    return NULL;
}

int main(int argc, char** argv) {
    const int threads = argc > 1 ? atoi(argv[1]) : 1;
    pthread_t others[kThreads];
    int provided;
    if (shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) != 0)
        return 1;
    me = shmem_my_pe();
    n = shmem_n_pes();
    right = (me + 1) % n;
    for (int t = 0; t < threads; ++t) number[t] = me + 0.5 * t;
    shmem_pcontrol(3);
    shmem_barrier_all();
    for (int t = 1; t < threads; ++t) pthread_create(&others[t], NULL, call_all, (void*)(size_t)t);
    call_all(NULL);
    for (int t = 1; t < threads; ++t) pthread_join(others[t], NULL);
    shmem_barrier_all();
    for (int t = 0; t < threads; ++t) {
        for (int i = 0; i < 7; ++i) want("shmem_long_p", word[t][i] == 100 * t + i);
        for (int i = 0; i < 4; ++i) want("shmem_longdouble_p", wide[t][i] == i + 0.25L * t);
    }
    want("all of shmem_int_atomic_fetch_add", me != 0 || sum == 6 * n * threads);
    shmem_finalize();
    return wrong;
}
