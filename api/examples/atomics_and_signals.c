/* Examples of the manual pages. What follows a line "== PAGE ==" up to the next one is on that page; the test of the
 * pages compiles all files into one program, and calls each function on each PE. */
#include <assert.h>
#include <shmem.h>

/* == shmem_atomic_fetch shmem_atomic_set == */
void a_flag_for_all(void) {
    static int stop;
    if (shmem_my_pe() == 0)
        shmem_atomic_set(&stop, 1, 0);
    shmem_barrier_all();
    assert(shmem_atomic_fetch(&stop, 0) == 1);
}

/* == shmem_atomic_compare_swap == */
/* The first PE to come becomes the owner. */
void claim(void) {
    static long owner; /* on PE 0: 0, or the number of a PE and 1 */
    long mine = shmem_my_pe() + 1;
    long before = shmem_atomic_compare_swap(&owner, 0L, mine, 0);
    if (before == 0)
        assert(shmem_atomic_fetch(&owner, 0) == mine);
}

/* == shmem_atomic_swap == */
void who_was_here_before(void) {
    static int last = -1;
    int before = shmem_atomic_swap(&last, shmem_my_pe(), 0);
    assert(before >= -1 && before != shmem_my_pe());
}

/* == shmem_atomic_inc == */
/* Tickets: each caller gets a number of its own. */
void take_tickets(void) {
    static long next;
    long ticket = shmem_atomic_fetch_inc(&next, 0);
    assert(ticket < shmem_n_pes());
    shmem_barrier_all();
    assert(shmem_g(&next, 0) == shmem_n_pes());
}

/* == shmem_atomic_add == */
void sum_on_first(void) {
    static long sum;
    shmem_atomic_add(&sum, (long)shmem_my_pe(), 0);
    shmem_barrier_all();
    long n = shmem_n_pes();
    assert(shmem_g(&sum, 0) == n * (n - 1) / 2);
}

/* == shmem_atomic_and == */
void clear_a_bit(void) {
    static unsigned flags = 7;
    unsigned before = shmem_atomic_fetch_and(&flags, ~2U, 0);
    assert((before & 5) == 5);
}

/* == shmem_atomic_or == */
void say_that_i_am_here(void) {
    static uint64_t present; /* a bit for each of up to 64 PEs */
    shmem_atomic_or(&present, (uint64_t)1 << shmem_my_pe(), 0);
    shmem_barrier_all();
    assert(shmem_g(&present, 0) >> shmem_my_pe() & 1);
}

/* == shmem_atomic_xor == */
void flip_a_bit(void) {
    static unsigned flags;
    unsigned before = shmem_atomic_fetch_xor(&flags, 1, 0);
    assert(before <= 1);
}

/* == shmem_atomic_fetch_nbi == */
void several_at_once(void) {
    static long next[2];
    long got[2];
    shmem_atomic_fetch_add_nbi(&got[0], &next[0], 5L, 0);
    shmem_atomic_fetch_inc_nbi(&got[1], &next[1], 0);
    shmem_quiet(); /* both values are here */
    assert(got[0] % 5 == 0 && got[1] >= 0);
}

/* == shmem_put_signal == */
void row_with_a_signal(void) {
    static double halo[100];
    static uint64_t arrived;
    double edge[100] = {0};
    int right = (shmem_my_pe() + 1) % shmem_n_pes();
    edge[99] = 7;
    shmem_put_signal(halo, edge, 100, &arrived, 1, SHMEM_SIGNAL_SET,
                     right);
    shmem_signal_wait_until(&arrived, SHMEM_CMP_EQ, 1);
    assert(halo[99] == 7);
}

/* == shmem_put_signal_nbi == */
void rows_with_a_counter(void) {
    static double halo[2][100];
    static uint64_t arrived;
    static double edge[100];
    int right = (shmem_my_pe() + 1) % shmem_n_pes();
    for (int i = 0; i < 2; ++i)
        shmem_put_signal_nbi(halo[i], edge, 100, &arrived, 1,
                             SHMEM_SIGNAL_ADD, right);
    shmem_signal_wait_until(&arrived, SHMEM_CMP_EQ, 2);
    shmem_quiet(); /* edge may be used again */
}

/* == shmem_signal_add == */
void give_credits(void) {
    static uint64_t credits;
    shmem_signal_add(&credits, 3, (shmem_my_pe() + 1) % shmem_n_pes());
    shmem_signal_wait_until(&credits, SHMEM_CMP_GE, 3);
}

/* == shmem_signal_fetch == */
void look_at_a_signal(void) {
    static uint64_t arrived;
    if (shmem_signal_fetch(&arrived) > 0) {
        /* the data of its put is here */
    }
}

/* == shmem_signal_wait_until == */
void wait_for_all_pes(void) {
    static uint64_t arrived;
    uint64_t n = (uint64_t)shmem_n_pes();
    for (int pe = 0; pe < shmem_n_pes(); ++pe)
        shmem_signal_add(&arrived, 1, pe);
    assert(shmem_signal_wait_until(&arrived, SHMEM_CMP_GE, n) == n);
}

/* == shmem_set_lock == */
void one_after_the_other(void) {
    static long lock, total;
    shmem_set_lock(&lock);
    shmem_p(&total, shmem_g(&total, 0) + 1, 0);
    shmem_clear_lock(&lock); /* completes the put */
    if (shmem_test_lock(&lock) == 0)
        shmem_clear_lock(&lock);
    shmem_barrier_all();
    assert(shmem_g(&total, 0) == shmem_n_pes());
}
