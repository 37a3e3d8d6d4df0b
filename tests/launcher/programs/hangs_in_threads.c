/* A PE whose first thread waits, whose second one waits for another value, and whose third one computes for ever. */
#include <pthread.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static long first[2];
static uint64_t second = 7;

static void* wait_for_second(void* nothing) {
    shmem_uint64_wait_until(&second, SHMEM_CMP_EQ, 9); /* line: second */
    return nothing;
}

static void* compute(void* nothing) {
    for (volatile long i = 0;; ++i) { /* line: compute */
    }
    return nothing;
}

int main(void) {
    int provided;
    pthread_t threads[2];
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    FILE* file = fopen("pid.new", "w");
    fprintf(file, "%d\n", (int)getpid());
    fclose(file);
    rename("pid.new", "pid.0");
    pthread_create(&threads[0], NULL, wait_for_second, NULL);
    pthread_create(&threads[1], NULL, compute, NULL);
    shmem_long_wait_until(&first[1], SHMEM_CMP_GT, 5); /* line: first */
    return 98;
}
