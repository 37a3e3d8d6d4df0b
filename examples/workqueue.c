/* A dynamic work queue: a counter on PE 0 deals out tasks of very different length; each thread of a PE takes tasks
 * through a context of its own. The results are collected, uneven as they are. Checked: every task done once, and
 * right. Arguments: tasks, threads a PE. */
#include <pthread.h>
#include "example.h"

typedef struct {
    long task, answer;
} result_t;

static long tasks;
static long* next_task; /* symmetric; PE 0's counts */
static result_t* results;
static size_t done;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The length of the Collatz sequence of task + 1. */
static long work(long task) {
    long steps = 0;
    for (unsigned long value = (unsigned long)task + 1; value != 1; ++steps)
        value = value % 2 ? 3 * value + 1 : value / 2;
    return steps;
}

static void* take_tasks(void* unused) {
    (void)unused;
    shmem_ctx_t ctx;
    REQUIRE(shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx) == 0, "no context");
    for (;;) {
        const long task = shmem_ctx_long_atomic_fetch_inc(ctx, next_task, 0);
        if (task >= tasks)
            break;
        const result_t result = {task, work(task)};
        pthread_mutex_lock(&lock);
        results[done++] = result;
        pthread_mutex_unlock(&lock);
    }
    shmem_ctx_destroy(ctx);
    return NULL;
}

int main(int argc, char** argv) {
    int provided;
    REQUIRE(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) == 0, "no threads");
    tasks = (long)example_size(argc, argv, 1, 1500);
    const size_t threads = example_size(argc, argv, 2, 3);
    next_task = shmem_calloc(1, sizeof(long));
    results = shmem_malloc((size_t)tasks * sizeof(result_t));
    result_t* all = shmem_malloc((size_t)tasks * sizeof(result_t));
    pthread_t* workers = malloc(threads * sizeof(pthread_t));
    for (size_t i = 1; i < threads; ++i)
        REQUIRE(pthread_create(&workers[i], NULL, take_tasks, NULL) == 0, "no thread %zu", i);
    take_tasks(NULL);
    for (size_t i = 1; i < threads; ++i) pthread_join(workers[i], NULL);

    shmem_collectmem(SHMEM_TEAM_WORLD, all, results, done * sizeof(result_t));
    char* seen = calloc((size_t)tasks, 1);
    for (long i = 0; i < tasks; ++i) {
        REQUIRE(all[i].task >= 0 && all[i].task < tasks && !seen[all[i].task], "task %ld was done twice", all[i].task);
        REQUIRE(all[i].answer == work(all[i].task), "task %ld is wrong", all[i].task);
        seen[all[i].task] = 1;
    }
    return example_pass("workqueue");
}
