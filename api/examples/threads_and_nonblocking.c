/* Examples of the manual pages. What follows a line "== PAGE ==" up to the next one is on that page; the test of the
 * pages compiles all files into one program, and calls each function on each PE. */
#include <assert.h>
#include <omp.h>
#include <shmemx.h>

/* == shmemx_team_sync_mt == */
void all_threads_of_all_pes(void) {
#pragma omp parallel num_threads(2)
    shmemx_team_sync_mt(SHMEM_TEAM_WORLD, omp_get_thread_num(),
                        omp_get_num_threads());
}

/* == shmemx_broadcast_mt == */
void broadcast_by_all_threads(void) {
    static double field[1000];
    if (shmem_my_pe() == 0)
        field[999] = 1;
#pragma omp parallel num_threads(2)
    shmemx_broadcast_mt(SHMEM_TEAM_WORLD, field, field, 1000, 0,
                        omp_get_thread_num(), omp_get_num_threads());
    assert(field[999] == 1);
}

/* == shmemx_collect_mt == */
void collect_by_all_threads(void) {
    static int mine[2];
    size_t all = 2 * (size_t)shmem_n_pes();
    int* parts = shmem_malloc(all * sizeof *parts);
    mine[1] = shmem_my_pe();
#pragma omp parallel num_threads(2)
    shmemx_collect_mt(SHMEM_TEAM_WORLD, parts, mine, 2,
                      omp_get_thread_num(), omp_get_num_threads());
    assert(parts[all - 1] == shmem_n_pes() - 1);
    shmem_free(parts);
}

/* == shmemx_alltoall_mt == */
void exchange_by_all_threads(void) {
    int n = shmem_n_pes();
    int* out = shmem_calloc((size_t)n, sizeof *out);
    int* in = shmem_calloc((size_t)n, sizeof *in);
    for (int pe = 0; pe < n; ++pe) out[pe] = shmem_my_pe();
#pragma omp parallel num_threads(2)
    shmemx_alltoall_mt(SHMEM_TEAM_WORLD, in, out, 1, omp_get_thread_num(),
                       omp_get_num_threads());
    assert(in[n - 1] == n - 1);
    shmem_free(in);
    shmem_free(out);
}

/* == shmemx_reduce_mt == */
void sum_by_all_threads(void) {
    static double part[1000], sum[1000];
    part[999] = 1;
#pragma omp parallel num_threads(2)
    shmemx_sum_reduce_mt(SHMEM_TEAM_WORLD, sum, part, 1000,
                         omp_get_thread_num(), omp_get_num_threads());
    assert(sum[999] == shmem_n_pes());
}

/* == shmemx_scan_mt == */
void prefix_sums_by_all_threads(void) {
    static long part[1000], before[1000];
    part[999] = 1;
#pragma omp parallel num_threads(2)
    shmemx_sum_exscan_mt(SHMEM_TEAM_WORLD, before, part, 1000,
                         omp_get_thread_num(), omp_get_num_threads());
    assert(before[999] == shmem_my_pe());
}

/* == shmemx_team_sync_nbe == */
void arrive_and_compute(void) {
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    shmemx_team_sync_nbe(SHMEM_TEAM_WORLD, &request);
    /* computation that needs nothing of other PEs */
    shmemx_request_wait(&request);
}

/* == shmemx_broadcast_nbe == */
void broadcast_and_compute(void) {
    static double field[100];
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    if (shmem_my_pe() == 0)
        field[99] = 1;
    shmemx_broadcast_nbe(SHMEM_TEAM_WORLD, field, field, 100, 0,
                         &request);
    /* computation without field */
    shmemx_request_wait(&request);
    assert(field[99] == 1);
}

/* == shmemx_collect_nbe == */
void collect_and_compute(void) {
    static int mine;
    int n = shmem_n_pes();
    int* numbers = shmem_malloc((size_t)n * sizeof *numbers);
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    mine = shmem_my_pe();
    shmemx_fcollect_nbe(SHMEM_TEAM_WORLD, numbers, &mine, 1, &request);
    shmemx_request_wait(&request);
    assert(numbers[n - 1] == n - 1);
    shmem_free(numbers);
}

/* == shmemx_alltoall_nbe == */
void exchange_and_compute(void) {
    int n = shmem_n_pes();
    int* out = shmem_calloc((size_t)n, sizeof *out);
    int* in = shmem_calloc((size_t)n, sizeof *in);
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    for (int pe = 0; pe < n; ++pe) out[pe] = shmem_my_pe();
    shmemx_alltoall_nbe(SHMEM_TEAM_WORLD, in, out, 1, &request);
    shmemx_request_wait(&request);
    assert(in[n - 1] == n - 1);
    shmem_free(in);
    shmem_free(out);
}

/* == shmemx_reduce_nbe == */
void sum_and_compute(void) {
    static double part, sum;
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    part = 0.5;
    shmemx_sum_reduce_nbe(SHMEM_TEAM_WORLD, &sum, &part, 1, &request);
    /* computation that does not need sum */
    shmemx_request_wait(&request);
    assert(sum == 0.5 * shmem_n_pes());
}

/* == shmemx_scan_nbe == */
void place_and_compute(void) {
    static long count, first;
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    count = 10;
    shmemx_sum_exscan_nbe(SHMEM_TEAM_WORLD, &first, &count, 1, &request);
    shmemx_request_wait(&request);
    assert(first == 10 * shmem_my_pe());
}

/* == shmemx_team_sync_mt_nbe == */
void all_threads_arrive_and_compute(void) {
    shmemx_request_t request;
    shmemx_request_allocate(&request, SHMEMX_REQUEST_SHARED);
#pragma omp parallel num_threads(2)
    {
        shmemx_team_sync_mt_nbe(SHMEM_TEAM_WORLD, omp_get_thread_num(),
                                omp_get_num_threads(), &request);
        /* computation that needs nothing of other PEs */
        shmemx_request_wait(&request);
    }
    shmemx_request_free(&request);
}

/* == shmemx_broadcast_mt_nbe == */
void broadcast_while_threads_compute(void) {
    static double field[1000];
    shmemx_request_t request;
    shmemx_request_allocate(&request, SHMEMX_REQUEST_SHARED);
    if (shmem_my_pe() == 0)
        field[999] = 1;
#pragma omp parallel num_threads(2)
    {
        shmemx_broadcast_mt_nbe(SHMEM_TEAM_WORLD, field, field, 1000, 0,
                                omp_get_thread_num(),
                                omp_get_num_threads(), &request);
        /* computation without field */
        shmemx_request_wait(&request);
    }
    assert(field[999] == 1);
    shmemx_request_free(&request);
}

/* == shmemx_collect_mt_nbe == */
void collect_while_threads_compute(void) {
    static int mine[2];
    size_t all = 2 * (size_t)shmem_n_pes();
    int* parts = shmem_malloc(all * sizeof *parts);
    shmemx_request_t request;
    shmemx_request_allocate(&request, SHMEMX_REQUEST_SHARED);
    mine[1] = shmem_my_pe();
#pragma omp parallel num_threads(2)
    shmemx_collect_mt_nbe(SHMEM_TEAM_WORLD, parts, mine, 2,
                          omp_get_thread_num(), omp_get_num_threads(),
                          &request);
    shmemx_request_wait(&request); /* all threads have posted */
    assert(parts[all - 1] == shmem_n_pes() - 1);
    shmemx_request_free(&request);
    shmem_free(parts);
}

/* == shmemx_alltoall_mt_nbe == */
void exchange_while_threads_compute(void) {
    int n = shmem_n_pes();
    int* out = shmem_calloc((size_t)n, sizeof *out);
    int* in = shmem_calloc((size_t)n, sizeof *in);
    shmemx_request_t request;
    shmemx_request_allocate(&request, SHMEMX_REQUEST_SHARED);
    for (int pe = 0; pe < n; ++pe) out[pe] = shmem_my_pe();
#pragma omp parallel num_threads(2)
    shmemx_alltoall_mt_nbe(SHMEM_TEAM_WORLD, in, out, 1,
                           omp_get_thread_num(), omp_get_num_threads(),
                           &request);
    shmemx_request_free(&request); /* waits */
    assert(in[n - 1] == n - 1);
    shmem_free(in);
    shmem_free(out);
}

/* == shmemx_reduce_mt_nbe == */
void sum_while_threads_compute(void) {
    static double part[1000], sum[1000];
    shmemx_request_t request;
    shmemx_request_allocate(&request, SHMEMX_REQUEST_SHARED);
    part[999] = 1;
#pragma omp parallel num_threads(2)
    {
        shmemx_sum_reduce_mt_nbe(SHMEM_TEAM_WORLD, sum, part, 1000,
                                 omp_get_thread_num(),
                                 omp_get_num_threads(), &request);
        /* computation without part and sum */
        shmemx_request_wait(&request);
        assert(sum[999] == shmem_n_pes());
    }
    shmemx_request_free(&request);
}

/* == shmemx_scan_mt_nbe == */
void prefix_sums_while_threads_compute(void) {
    static long part[1000], before[1000];
    shmemx_request_t request;
    shmemx_request_allocate(&request, SHMEMX_REQUEST_SHARED);
    part[999] = 1;
#pragma omp parallel num_threads(2)
    shmemx_sum_exscan_mt_nbe(SHMEM_TEAM_WORLD, before, part, 1000,
                             omp_get_thread_num(), omp_get_num_threads(),
                             &request);
    shmemx_request_wait(&request);
    assert(before[999] == shmem_my_pe());
    shmemx_request_free(&request);
}

/* == shmemx_alltoallv == */
/* PE i sends i + 1 longs to each PE. */
void exchange_of_lengths(void) {
    enum { kMost = 16 };
    static long in[kMost * kMost], out[kMost];
    size_t from[kMost], at[kMost], to[kMost], zero[kMost] = {0}, sum = 0;
    size_t n = (size_t)shmem_n_pes(), mine = (size_t)shmem_my_pe() + 1;
    for (size_t i = 0; i < n; sum += ++i)
        from[i] = i + 1, at[i] = sum, to[i] = mine;
    out[0] = (long)mine;
    shmemx_alltoallv(SHMEM_TEAM_WORLD, in, from, at, out, to, zero,
                     sizeof(long));
    assert(in[at[n - 1]] == (long)n);
}

/* == shmemx_neighbor_alltoall == */
void with_left_and_right(void) {
    static long in[2], out[2];
    int me = shmem_my_pe(), n = shmem_n_pes();
    int neighbors[2] = {(me + n - 1) % n, (me + 1) % n};
    out[0] = out[1] = me;
    shmemx_neighbor_alltoall(SHMEM_TEAM_WORLD, neighbors, 2, in, out,
                             sizeof(long));
    assert(in[0] == neighbors[0] && in[1] == neighbors[1]);
}

/* == shmemx_plan_begin == */
void the_same_sum_many_times(void) {
    static double part, sum;
    shmemx_plan_t plan = SHMEMX_PLAN_NULL;
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    shmemx_plan_begin(&plan);
    shmemx_sum_reduce_nbe(SHMEM_TEAM_WORLD, &sum, &part, 1, &request);
    shmemx_plan_end(&plan);
    for (int step = 1; step <= 3; ++step) {
        part = step;
        shmemx_request_start(plan, &request);
        shmemx_request_wait(&request);
        assert(sum == step * shmem_n_pes());
    }
    shmemx_plan_free(&plan);
}
