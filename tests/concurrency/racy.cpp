// A program that is wrong: one PE puts or gets while another uses the data, and nothing orders the two. ThreadSanitizer
// must say so, or its silence about the other programs of this folder means nothing. The argument:
//   p, put, get     the operation
//   no_lock         several PEs count in plain memory, each under a lock that is its own; "lock" is the same done right
//   broadcast       a member reads what another has put before both were in a broadcast, which orders the root's alone
//
// For p, put and get:
// the remote side comes last and late, round after round: whoever is ahead in a barrier may already hand its clock to a
// PE that is still leaving the one before, which would hide the race from the sanitizer.
#include "support/pes_as_threads.h"

#include <shmem.h>

#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

namespace {

constexpr size_t kElements = 16;
constexpr int kRounds = 5;
constexpr useconds_t kLateUs = 20000;

// Returns a value that was got, so that no compiler leaves the get out.
long use_remotely(const std::string& kind, long* data) {
    long values[kElements] = {1, 2, 3};
    if (kind == "p")
        shmem_long_p(data, 1, 1);
    else if (kind == "put")
        shmem_long_put(data, values, kElements, 1);
    else
        shmem_long_get(values, data, kElements, 1);
    return values[0];
}

long use_locally(const std::string& kind, long* data) {
    if (kind == "get")
        data[0] += 1;
    return data[0];
}

// Puts or gets against plain use.
void race_with_put(const std::string& kind) {
    long sum = 0, remote_sum = 0;
    heddle::test::run_pes(2, [&](int pe) {
        shmem_init();
        long* data = static_cast<long*>(shmem_calloc(kElements, sizeof(long)));
        for (int round = 0; round < kRounds; ++round) {
            if (pe == 0) {
                usleep(kLateUs);
                remote_sum += use_remotely(kind, data);
            } else {
                sum += use_locally(kind, data);
            }
            shmem_barrier_all();
        }
        shmem_free(data);
        shmem_finalize();
    });
    printf("%ld\n", sum + remote_sum);
}

// A counter that every PE adds to under the lock that lock_of(pe) names.
template <class LockOf>
void count_under_locks(LockOf lock_of) {
    constexpr int kPes = 3, kTurns = 200;
    heddle::test::run_pes(kPes, [&](int pe) {
        shmem_init();
        long* locks = static_cast<long*>(shmem_calloc(kPes, sizeof(long)));
        long* counter = static_cast<long*>(shmem_ptr(shmem_calloc(1, sizeof(long)), 0));
        for (int i = 0; i < kTurns; ++i) {
            shmem_set_lock(locks + lock_of(pe));
            *counter += 1;
            shmem_clear_lock(locks + lock_of(pe));
            std::this_thread::yield();
        }
        shmem_barrier_all();
        if (pe == 0)
            printf("%ld\n", *counter);
        shmem_finalize();
    });
}

// PE 1 puts to PE 2; both are in PE 0's broadcast; PE 2 reads. Round after round in three orders of arrival: a PE that is
// asleep in the broadcast when the root comes hands its clock to the root, and by it to PE 2, which hides the race.
void trust_a_broadcast() {
    setenv("HEDDLE_BROADCAST", "inline", 1);
    long sum = 0;
    heddle::test::run_pes(3, [&](int pe) {
        shmem_init();
        long* data = static_cast<long*>(shmem_calloc(3 * kRounds, sizeof(long)));
        long* root = static_cast<long*>(shmem_calloc(2, sizeof(long)));
        for (int round = 0; round < 3 * kRounds; ++round) {
            if (round % 3 != 0 && (round % 3 == 1) == (pe == 1))
                usleep(kLateUs);
            if (pe == 1)
                shmem_long_p(data + round, 1, 2);
            shmem_long_broadcast(SHMEM_TEAM_WORLD, root, root + 1, 1, 0);
            if (pe == 2)
                sum += data[round];
            shmem_barrier_all();
        }
        shmem_finalize();
    });
    printf("%ld\n", sum);
}

}  // namespace

int main(int argc, char** argv) {
    const std::string kind = argc > 1 ? argv[1] : "p";
    setenv("SHMEM_SYMMETRIC_SIZE", "1M", 1);
    if (kind == "no_lock")
        count_under_locks([](int pe) { return pe; });
    else if (kind == "lock")
        count_under_locks([](int) { return 0; });
    else if (kind == "broadcast")
        trust_a_broadcast();
    else
        race_with_put(kind);
}
