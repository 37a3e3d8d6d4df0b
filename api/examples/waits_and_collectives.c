/* Examples of the manual pages. What follows a line "== PAGE ==" up to the next one is on that page; the test of the
 * pages compiles all files into one program, and calls each function on each PE. */
#include <assert.h>
#include <shmem.h>

/* == shmem_wait_until shmem_fence == */
void data_and_flag(void) {
    static long data;
    static int flag;
    int right = (shmem_my_pe() + 1) % shmem_n_pes();
    shmem_p(&data, 42L, right);
    shmem_fence(); /* data is there before the flag */
    shmem_p(&flag, 1, right);
    shmem_wait_until(&flag, SHMEM_CMP_EQ, 1);
    assert(data == 42);
}

/* == shmem_test == */
void work_until_it_is_there(void) {
    static int flag;
    shmem_p(&flag, 1, (shmem_my_pe() + 1) % shmem_n_pes());
    while (!shmem_test(&flag, SHMEM_CMP_EQ, 1)) {
        /* other work */
    }
}

/* == shmem_wait_until_all == */
void flag_of_each_pe(void) {
    int me = shmem_my_pe(), n = shmem_n_pes();
    int* flags = shmem_calloc((size_t)n, sizeof *flags);
    for (int pe = 0; pe < n; ++pe) shmem_p(&flags[me], 1, pe);
    shmem_wait_until_all(flags, (size_t)n, NULL, SHMEM_CMP_EQ, 1);
    shmem_free(flags);
}

/* == shmem_wait_until_any shmem_test_any == */
void in_the_order_of_arrival(void) {
    int me = shmem_my_pe(), n = shmem_n_pes();
    int* flags = shmem_calloc((size_t)n, sizeof *flags);
    int done[64] = {0}; /* up to 64 PEs; not 0: leave this one out */
    for (int pe = 0; pe < n; ++pe) shmem_p(&flags[me], 1, pe);
    for (int i = 0; i < n; ++i)
        done[shmem_wait_until_any(flags, (size_t)n, done, SHMEM_CMP_EQ,
                                  1)] = 1;
    assert(shmem_test_any(flags, (size_t)n, done, SHMEM_CMP_EQ, 1) ==
           SIZE_MAX);
    shmem_free(flags);
}

/* == shmem_wait_until_some shmem_test_some == */
void all_that_have_come(void) {
    int me = shmem_my_pe(), n = shmem_n_pes();
    int* flags = shmem_calloc((size_t)n, sizeof *flags);
    size_t which[64], count; /* up to 64 PEs */
    for (int pe = 0; pe < n; ++pe) shmem_p(&flags[me], 1, pe);
    count = shmem_wait_until_some(flags, (size_t)n, which, NULL,
                                  SHMEM_CMP_EQ, 1);
    assert(count >= 1 && flags[which[0]] == 1);
    count =
        shmem_test_some(flags, (size_t)n, which, NULL, SHMEM_CMP_EQ, 1);
    shmem_free(flags);
}

/* == shmem_test_all == */
void are_all_here(void) {
    static int flags[2];
    int right = (shmem_my_pe() + 1) % shmem_n_pes();
    shmem_p(&flags[0], 1, right);
    shmem_p(&flags[1], 1, right);
    while (!shmem_test_all(flags, 2, NULL, SHMEM_CMP_EQ, 1)) {
        /* other work */
    }
}

/* == shmem_quiet == */
void complete_before_telling(void) {
    static long data[100];
    static int flag;
    long block[100] = {5};
    int n = shmem_n_pes(), last = n - 1;
    if (shmem_my_pe() == 0) {
        shmem_put_nbi(data, block, 100, last);
        shmem_quiet();            /* data is on the last PE ... */
        shmem_p(&flag, 1, n / 2); /* ... before another one hears of it */
    }
    if (shmem_my_pe() == n / 2) {
        shmem_wait_until(&flag, SHMEM_CMP_EQ, 1);
        assert(shmem_g(&data[0], last) == 5);
    }
}

/* == shmem_pe_quiet == */
void complete_on_one_pe(void) {
    static long data[100];
    long block[100] = {0};
    int right = (shmem_my_pe() + 1) % shmem_n_pes();
    shmem_put_nbi(data, block, 100, right);
    shmem_pe_quiet(&right, 1); /* whatever else is under way */
}

/* == shmem_barrier_all == */
void a_phase_after_the_other(void) {
    static long from_left;
    int me = shmem_my_pe(), n = shmem_n_pes();
    shmem_p(&from_left, (long)me, (me + 1) % n);
    shmem_barrier_all(); /* all puts of all PEs are complete */
    assert(from_left == (me + n - 1) % n);
}

/* == shmem_sync_all == */
void stores_for_others(void) {
    static long mine;
    int right = (shmem_my_pe() + 1) % shmem_n_pes();
    mine = shmem_my_pe();
    shmem_sync_all(); /* stores are visible; puts would need a quiet */
    assert(shmem_g(&mine, right) == right);
}

/* == shmem_team_sync == */
void wait_for_the_node(void) {
    shmem_team_sync(SHMEM_TEAM_SHARED); /* or shmem_sync, in C11 */
}

/* == shmem_broadcast == */
void settings_of_first(void) {
    static double settings[3];
    if (shmem_my_pe() == 0)
        settings[1] = 0.5;
    shmem_broadcast(SHMEM_TEAM_WORLD, settings, settings, 3, 0);
    assert(settings[1] == 0.5);
}

/* == shmem_collect == */
/* Each PE has one element more than the one before. */
void parts_of_different_lengths(void) {
    static int mine[8];
    int me = shmem_my_pe(), n = shmem_n_pes();
    size_t all = (size_t)(n * (n + 1) / 2);
    int* parts = shmem_malloc(all * sizeof *parts);
    mine[me % 8] = me;
    shmem_collect(SHMEM_TEAM_WORLD, parts, mine, (size_t)me + 1);
    assert(parts[all - 1] == n - 1);
    shmem_free(parts);
}

/* == shmem_fcollect == */
void number_of_each_pe(void) {
    static int mine;
    int n = shmem_n_pes();
    int* numbers = shmem_malloc((size_t)n * sizeof *numbers);
    mine = shmem_my_pe();
    shmem_fcollect(SHMEM_TEAM_WORLD, numbers, &mine, 1);
    assert(numbers[n - 1] == n - 1);
    shmem_free(numbers);
}

/* == shmem_alltoall == */
void one_for_each(void) {
    int me = shmem_my_pe(), n = shmem_n_pes();
    int* out = shmem_malloc((size_t)n * sizeof *out);
    int* in = shmem_malloc((size_t)n * sizeof *in);
    for (int pe = 0; pe < n; ++pe) out[pe] = 100 * me + pe;
    shmem_alltoall(SHMEM_TEAM_WORLD, in, out, 1);
    assert(in[n - 1] == 100 * (n - 1) + me);
    shmem_free(in);
    shmem_free(out);
}

/* == shmem_alltoalls == */
/* Every second element of out goes, every third one of in is filled. */
void with_gaps(void) {
    size_t n = (size_t)shmem_n_pes();
    int* out = shmem_calloc(2 * n, sizeof *out);
    int* in = shmem_calloc(3 * n, sizeof *in);
    for (size_t pe = 0; pe < n; ++pe) out[2 * pe] = shmem_my_pe();
    shmem_alltoalls(SHMEM_TEAM_WORLD, in, out, 3, 2, 1);
    assert(in[3 * (n - 1)] == (int)n - 1);
    shmem_free(in);
    shmem_free(out);
}

/* == shmem_reduce == */
void sum_and_maximum(void) {
    static long value, sum, highest;
    long n = shmem_n_pes();
    value = shmem_my_pe();
    shmem_sum_reduce(SHMEM_TEAM_WORLD, &sum, &value, 1);
    shmem_max_reduce(SHMEM_TEAM_WORLD, &highest, &value, 1);
    assert(sum == n * (n - 1) / 2 && highest == n - 1);
}

/* == shmem_scan == */
/* Where the elements of this PE begin among those of all PEs. */
void place_of_my_part(void) {
    static size_t count, first;
    count = 10;
    shmem_sum_exscan(SHMEM_TEAM_WORLD, &first, &count, 1);
    assert(first == (size_t)shmem_my_pe() * 10);
}
