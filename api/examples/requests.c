/* Examples of the manual pages. What follows a line "== PAGE ==" up to the next one is on that page; the test of the
 * pages compiles all files into one program, and calls each function on each PE. */
#include <assert.h>
#include <shmemx.h>
#include <stdint.h>

/* == shmemx_put_nbe shmemx_request_wait == */
void wait_for_one_put(void) {
    static double there[100];
    double block[100] = {0};
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    shmemx_put_nbe(there, block, 100, 0, &request);
    /* computation that leaves block as it is */
    shmemx_request_wait(&request);
    assert(request == SHMEMX_REQUEST_NULL);
}

/* == shmemx_get_nbe shmemx_request_test == */
void work_until_the_row_is_here(void) {
    static double row[100];
    double copy[100];
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    shmemx_get_nbe(copy, row, 100, 0, &request);
    while (!shmemx_request_test(&request)) {
        /* other work */
    }
}

/* == shmemx_put_signal_nbe == */
void row_with_its_signal(void) {
    static double halo[100];
    static uint64_t arrived;
    static double edge[100];
    int right = (shmem_my_pe() + 1) % shmem_n_pes();
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    shmemx_put_signal_nbe(halo, edge, 100, &arrived, 1, SHMEM_SIGNAL_SET,
                          right, &request);
    shmem_signal_wait_until(&arrived, SHMEM_CMP_EQ, 1);
    shmemx_request_wait(&request); /* edge may be used again */
}

/* == shmemx_atomic_nbe == */
void count_on_all_pes(void) {
    static long counter;
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    for (int pe = 0; pe < shmem_n_pes(); ++pe)
        shmemx_atomic_inc_nbe(&counter, pe, &request);
    shmemx_request_wait(&request);
    shmem_barrier_all();
    assert(shmem_g(&counter, shmem_my_pe()) == shmem_n_pes());
}

/* == shmemx_atomic_fetch_nbe == */
void two_tickets(void) {
    static long next[2];
    long got[2];
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    shmemx_atomic_fetch_inc_nbe(&got[0], &next[0], 0, &request);
    shmemx_atomic_fetch_add_nbe(&got[1], &next[1], 2L, 0, &request);
    shmemx_request_wait(&request);
    assert(got[0] < shmem_n_pes() && got[1] % 2 == 0);
}

/* == shmemx_request_allocate == */
/* Any number of threads may post to request and wait for it. */
void for_all_threads(void) {
    static double there[100];
    double block[100] = {0};
    shmemx_request_t request;
    if (shmemx_request_allocate(&request, SHMEMX_REQUEST_SHARED) != 0)
        shmem_global_exit(1);
    shmemx_put_nbe(there, block, 100, 0, &request);
    shmemx_request_free(&request); /* waits */
}

/* == shmemx_request_begin == */
void of_existing_code(void) {
    static double there[100];
    double block[100] = {0};
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    shmemx_request_begin(&request);
    shmem_put_nbi(there, block, 100, 0);
    shmemx_request_end(&request);
    shmemx_request_wait(&request);
}

/* == shmemx_request_merge == */
void one_wait_for_two(void) {
    static double there[2][100];
    double block[100] = {0};
    shmemx_request_t parts[2] = {SHMEMX_REQUEST_NULL,
                                 SHMEMX_REQUEST_NULL};
    shmemx_request_t both = SHMEMX_REQUEST_NULL;
    shmemx_put_nbe(there[0], block, 100, 0, &parts[0]);
    shmemx_put_nbe(there[1], block, 100, 0, &parts[1]);
    shmemx_request_merge(&both, 2, parts);
    shmemx_request_wait(&both);
}

/* == shmemx_request_wait_any shmemx_request_wait_some == */
void in_any_order(void) {
    static double row[2][100];
    double copy[2][100];
    size_t which[2];
    shmemx_request_t parts[2] = {SHMEMX_REQUEST_NULL,
                                 SHMEMX_REQUEST_NULL};
    for (int i = 0; i < 2; ++i)
        shmemx_get_nbe(copy[i], row[i], 100, 0, &parts[i]);
    size_t first = shmemx_request_wait_any(2, parts);
    assert(first < 2); /* copy[first] is here */
    while (shmemx_request_wait_some(2, parts, which) > 0) {
        /* copy[which[0]] and so on are here; 0: all have been */
    }
}

/* == shmemx_request_fence == */
void data_before_its_flag(void) {
    static long data, flag;
    long values[2] = {42, 1};
    int right = (shmem_my_pe() + 1) % shmem_n_pes();
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    shmemx_put_nbe(&data, &values[0], 1, right, &request);
    shmemx_request_fence(&request);
    shmemx_put_nbe(&flag, &values[1], 1, right, &request);
    shmem_wait_until(&flag, SHMEM_CMP_EQ, 1L);
    assert(data == 42);
    shmemx_request_wait(&request);
}
