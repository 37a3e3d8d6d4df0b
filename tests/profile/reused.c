// A thread puts on a context that the main thread destroys; then the main thread creates one of another team, which gets
// the same handle. The puts of the thread go to that team. Fails where one went astray.
#include <pthread.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

static long words[200], marks[200];
static shmem_ctx_t ctx;
static pthread_barrier_t turn;

static void put_all(long* to, int n) {
    for (int i = 0; i < n; ++i) shmem_ctx_long_p(ctx, &to[i], i + 1, 0);
}

static void* run(void* unused) {
    (void)unused;
    for (int round = 0; round < 2; ++round) {
        pthread_barrier_wait(&turn);
        put_all(round == 0 ? words : marks, round == 0 ? 200 : 100);
        pthread_barrier_wait(&turn);
    }
    return NULL;
}

int main(void) {
    int provided;
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    const int me = shmem_my_pe(), n = shmem_n_pes();
    shmem_team_t team;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 1, 1, n - 1, NULL, 0, &team);
    if (me == 1) {
        pthread_t other;
        pthread_barrier_init(&turn, NULL, 2);
        shmem_ctx_create(0, &ctx);
        const shmem_ctx_t first = ctx;
        pthread_create(&other, NULL, run, NULL);
        pthread_barrier_wait(&turn);
        pthread_barrier_wait(&turn);
        shmem_ctx_destroy(ctx);
        if (shmem_team_create_ctx(team, 0, &ctx) != 0 || ctx != first)
            printf("another handle: nothing is shown\n");
        pthread_barrier_wait(&turn);
        pthread_barrier_wait(&turn);
        pthread_join(other, NULL);
        shmem_ctx_quiet(ctx);
        shmem_ctx_destroy(ctx);
    }
    shmem_barrier_all();
    if (me == 0 && (words[199] != 200 || marks[0] != 0))
        shmem_global_exit(3);
    if (me == 1 && marks[99] != 100)
        shmem_global_exit(4);
    shmem_finalize();
    return 0;
}
