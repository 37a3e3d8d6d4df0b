/* Tokens around rings by put-with-signal: all PEs one way and the other, then the even and the odd PEs in rings of
 * their own, each a team whose context counts PEs in the team. Argument: laps. */
#include "example.h"

enum { kWords = 33 };

/* Sends a token `laps` times around the team's ring; each PE adds 1 to every word. */
static void run_ring(shmem_team_t team, int direction, size_t laps, long* token, uint64_t* signal) {
    const int me = shmem_team_my_pe(team), n = shmem_team_n_pes(team), next = (me + n + direction) % n;
    shmem_ctx_t ctx;
    REQUIRE(shmem_team_create_ctx(team, 0, &ctx) == 0, "no context");
    for (int i = 0; i < kWords; ++i) token[i] = 0;
    *signal = 0;
    shmem_team_sync(team);
    for (size_t lap = 1; lap <= laps; ++lap) {
        if (me != 0 || lap > 1) {
            const uint64_t turn = me == 0 ? lap - 1 : lap;
            shmem_signal_wait_until(signal, SHMEM_CMP_EQ, turn);
        }
        long sent[kWords];
        for (int i = 0; i < kWords; ++i) sent[i] = token[i] + 1;
        shmem_ctx_long_put_signal(ctx, token, sent, kWords, signal, lap, SHMEM_SIGNAL_SET, next);
    }
    if (me == 0) {
        shmem_signal_wait_until(signal, SHMEM_CMP_EQ, laps);
        for (int i = 0; i < kWords; ++i)
            REQUIRE(token[i] == (long)laps * n, "word %d is %ld after %zu laps of %d", i, token[i], laps, n);
    }
    shmem_team_sync(team);
    shmem_ctx_destroy(ctx);
}

int main(int argc, char** argv) {
    shmem_init();
    const size_t laps = example_size(argc, argv, 1, 20);
    const int n = shmem_n_pes();
    long* token = shmem_malloc(kWords * sizeof(long));
    uint64_t* signal = shmem_malloc(sizeof *signal);
    run_ring(SHMEM_TEAM_WORLD, 1, laps, token, signal);
    run_ring(SHMEM_TEAM_WORLD, -1, laps, token, signal);
    shmem_team_t even, odd = SHMEM_TEAM_INVALID;
    REQUIRE(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, (n + 1) / 2, NULL, 0, &even) == 0, "no even team");
    if (n > 1)
        REQUIRE(shmem_team_split_strided(SHMEM_TEAM_WORLD, 1, 2, n / 2, NULL, 0, &odd) == 0, "no odd team");
    const shmem_team_t mine = even != SHMEM_TEAM_INVALID ? even : odd;
    run_ring(mine, 1, laps, token, signal);
    shmem_team_destroy(mine);
    return example_pass("ring");
}
