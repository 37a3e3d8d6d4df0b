/* A bank: accounts on all PEs, each behind a lock of its own. PEs move money between random accounts, holding the two
 * locks in order; an auditor that finds all locks free at once must find all money. Argument: transfers a PE. */
#include "example.h"

enum { kAccounts = 6, kStart = 1000 };

static long locks[kAccounts]; /* static data is symmetric, too */
static long balances[kAccounts];

static int home_of(int account) {
    return account % shmem_n_pes();
}

static void add(int account, long amount) {
    const long balance = shmem_g(&balances[account], home_of(account));
    shmem_p(&balances[account], balance + amount, home_of(account));
}

static long total(void) {
    long sum = 0;
    for (int account = 0; account < kAccounts; ++account) sum += shmem_g(&balances[account], home_of(account));
    return sum;
}

/* True when it got all locks and looked; gives up at the first that is taken. */
static int audit(void) {
    int held = 0;
    while (held < kAccounts && shmem_test_lock(&locks[held]) == 0) ++held;
    if (held == kAccounts)
        REQUIRE(total() == (long)kAccounts * kStart, "an auditor found %ld", total());
    const int looked = held == kAccounts;
    while (held > 0) shmem_clear_lock(&locks[--held]);
    return looked;
}

int main(int argc, char** argv) {
    shmem_init();
    const size_t transfers = example_size(argc, argv, 1, 3000);
    for (int account = 0; account < kAccounts; ++account) balances[account] = kStart;
    shmem_barrier_all();
    unsigned seed = 17u + (unsigned)shmem_my_pe();
    for (size_t i = 0; i < transfers; ++i) {
        seed = seed * 1664525u + 1013904223u;
        const int one = (int)(seed >> 16) % kAccounts,
                  other = (one + 1 + (int)(seed >> 24) % (kAccounts - 1)) % kAccounts;
        const int first = one < other ? one : other, second = one < other ? other : one;
        shmem_set_lock(&locks[first]);
        shmem_set_lock(&locks[second]);
        add(first, 7);
        add(second, -7);
        shmem_clear_lock(&locks[second]); /* completes the puts before it lets go */
        shmem_clear_lock(&locks[first]);
        if (i % 16 == 0)
            audit();
    }
    shmem_barrier_all();
    REQUIRE(audit() || shmem_n_pes() > 1, "alone, an audit must succeed");
    shmem_barrier_all();
    REQUIRE(total() == (long)kAccounts * kStart, "%ld is left", total());
    return example_pass("locks");
}
