// order SCENARIO: programs whose PEs are in collectives that do not match, and some that only look like it. Each says
// which it is; what must come of it is in test_order.py. Prints "survived".
#include <shmemx.h>

#include <pthread.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <initializer_list>

namespace {

int dest[4], source[4], other_dest[4], other_source[4];
shmemx_request_t request;
uint64_t go;

void nap_ms(long ms) {
    const timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, nullptr);
}

// A team of the PEs a and b; SHMEM_TEAM_INVALID on the others.
shmem_team_t pair(int a, int b) {
    shmem_team_t team;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, a, b - a, 2, nullptr, 0, &team);
    return team;
}

// One PE is in a reduction, the other in a broadcast, on one team.
void different(int pe) {
    if (pe == 0)
        shmem_int_sum_reduce(SHMEM_TEAM_WORLD, dest, source, 1);
    else
        shmem_int_broadcast(SHMEM_TEAM_WORLD, dest, source, 1, 0);
}

// The same two, posted, in two orders.
void different_posted(int pe) {
    const auto sum = [] { shmemx_int_sum_reduce_nbe(SHMEM_TEAM_WORLD, dest, source, 1, &request); };
    const auto copy = [] { shmemx_int_broadcast_nbe(SHMEM_TEAM_WORLD, other_dest, other_source, 1, 0, &request); };
    if (pe == 0)
        sum(), copy();
    else
        copy(), sum();
    shmemx_request_wait(&request);
}

void posted_and_blocking(int pe) {
    if (pe == 0)
        shmemx_int_sum_reduce_nbe(SHMEM_TEAM_WORLD, dest, source, 1, &request);
    else
        shmem_int_max_reduce(SHMEM_TEAM_WORLD, dest, source, 1);
    shmemx_request_wait(&request);
}

// Posted and never waited for: the next collective says it.
void unequal_posted(int pe) {
    shmemx_int_sum_reduce_nbe(SHMEM_TEAM_WORLD, dest, source, pe == 0 ? 3 : 4, &request);
    shmem_barrier_all();
}

// Each is in the team that the other will come to next.
void circle_of_two(int pe) {
    const shmem_team_t a = pair(0, 1), b = pair(1, 0);
    shmem_team_sync(pe == 0 ? a : b);
    shmem_team_sync(pe == 0 ? b : a);
}

void circle_with_the_world(int pe) {
    const shmem_team_t a = pair(0, 1);
    if (pe == 0)
        shmem_barrier_all();
    shmem_int_fcollect(a, dest, source, 1);
    if (pe != 0)
        shmem_barrier_all();
}

// 0 waits for 1, 1 for 2, 2 for 0.
void circle_of_three(int pe) {
    const shmem_team_t teams[] = {pair(0, 1), pair(1, 2), pair(2, 0)};
    shmem_int_sum_reduce(teams[pe], dest, source, 1);
    shmem_int_sum_reduce(teams[(pe + 2) % 3], dest, source, 1);
}

// A chain, not a circle: 0 waits for 1, which waits for 2, which sleeps.
void slow_chain(int pe) {
    const shmem_team_t a = pair(0, 1), b = pair(1, 2);
    if (pe == 2)
        nap_ms(4000);
    if (pe == 1 || pe == 2)
        shmem_team_sync(b);
    if (pe == 0 || pe == 1)
        shmem_team_sync(a);
}

void slow(int pe) {
    for (int i = 0; i < 2; ++i) {
        if (pe == 1)
            nap_ms(i == 0 ? 4000 : 1500);
        shmem_int_max_reduce(SHMEM_TEAM_WORLD, dest, source, 4);
        shmem_int_broadcast(SHMEM_TEAM_WORLD, dest, source, 4, 1);
    }
}

// Collectives on two teams by turns, with a PE behind the others: what is seen of a PE is old at once.
void busy(int pe) {
    const shmem_team_t a = pair(0, 1), b = pair(1, 0);
    for (int i = 0; i < 3000; ++i) {
        if (i % 500 == 0 && pe == i / 500 % 2)
            nap_ms(600);
        if (pe < 2) {
            shmem_team_sync(a);
            shmem_int_broadcast(b, dest, source, 2, i % 2);
        }
    }
    shmem_barrier_all();
}

// Teams in two orders, which is right for collectives that are posted: each PE waits for the one that the other has
// posted last, and PE 1 comes late. Nobody may be accused.
void crossed_and_posted(int pe) {
    const shmem_team_t a = pair(0, 1), b = pair(1, 0);
    shmemx_request_t requests[2] = {};
    if (pe == 1)
        nap_ms(4000);
    for (int i : {pe, 1 - pe}) {
        if (i == 0)
            shmemx_int_sum_reduce_nbe(a, dest, source, 2, &requests[0]);
        else
            shmemx_int_fcollect_nbe(b, other_dest, other_source, 1, &requests[1]);
    }
    shmemx_request_wait(&requests[pe]);
    if (pe == 0)
        nap_ms(2500);
    shmemx_request_wait(&requests[1 - pe]);
}

// Outstanding for long, while both are in other collectives.
void outstanding_for_long(int pe) {
    const shmem_team_t a = pair(0, 1);
    if (pe == 0)
        shmemx_team_barrier_nbe(a, &request);
    shmem_barrier_all();
    if (pe == 1) {
        nap_ms(4000);
        shmem_uint64_p(&go, 1, 0);
    } else {
        shmem_uint64_wait_until(&go, SHMEM_CMP_EQ, 1);
    }
    shmem_barrier_all();
    if (pe == 1)
        shmemx_team_barrier_nbe(a, &request);
    shmemx_request_wait(&request);
}

shmem_team_t late_team;
uint64_t flag;

void* come_late(void* waits_first) {
    if (waits_first)
        shmem_uint64_wait_until(&flag, SHMEM_CMP_EQ, 1);
    nap_ms(4000);
    shmem_team_sync(late_team);
    return nullptr;
}

// It looks like circle_of_two, but PE 0 has a second thread that comes in the end: no PE may be ended.
void resolved_by_a_thread(int pe, bool that_the_library_has_seen) {
    const shmem_team_t a = pair(0, 1), b = pair(1, 0);
    late_team = b;
    pthread_t thread;
    if (pe == 0) {
        pthread_create(&thread, nullptr, come_late, that_the_library_has_seen ? &flag : nullptr);
        nap_ms(300);
        shmem_uint64_p(&flag, 1, 0);
        nap_ms(100);
    }
    shmem_barrier_all();
    if (pe == 0) {
        shmem_team_sync(a);
        pthread_join(thread, nullptr);
    } else {
        shmem_team_sync(b);
        shmem_team_sync(a);
    }
}
void thread_that_waited(int pe) {
    resolved_by_a_thread(pe, true);
}
void new_thread(int pe) {
    resolved_by_a_thread(pe, false);
}

long lock, other_lock;
uint64_t here;

void tell(int pe) {
    shmem_uint64_p(&here, 1, pe);
}
void be_told() {
    shmem_uint64_wait_until(&here, SHMEM_CMP_EQ, 1);
}

// PE 0 holds it while it waits for PE 1, which waits for it.
void lock_over_a_barrier(int pe) {
    if (pe == 0) {
        shmem_set_lock(&lock);
        tell(1);
        shmem_barrier_all();
        shmem_clear_lock(&lock);
    } else {
        be_told();
        shmem_set_lock(&lock);
        shmem_clear_lock(&lock);
        shmem_barrier_all();
    }
}
void crossed_locks(int pe) {
    shmem_set_lock(pe == 0 ? &lock : &other_lock);
    tell(1 - pe);
    be_told();
    shmem_set_lock(pe == 0 ? &other_lock : &lock);
}
void lock_twice(int) {
    shmem_set_lock(&lock);
    shmem_set_lock(&lock);
}
void* clear_late(void*) {
    nap_ms(300);
    shmem_clear_lock(&lock);
    return nullptr;
}
void lock_twice_cleared_by_a_thread(int pe) {
    if (pe != 0)
        return;
    pthread_t thread;
    shmem_set_lock(&lock);
    pthread_create(&thread, nullptr, clear_late, nullptr);
    shmem_set_lock(&lock);
    shmem_clear_lock(&lock);
    pthread_join(thread, nullptr);
}

void lock_at_the_end(int pe) {
    if (pe == 1)
        shmem_set_lock(&lock);
}

}  // namespace

int main(int argc, char** argv) {
    const struct {
        const char* name;
        void (*run)(int pe);
    } scenarios[] = {{"different", different},
                     {"different_posted", different_posted},
                     {"posted_and_blocking", posted_and_blocking},
                     {"unequal_posted", unequal_posted},
                     {"crossed_and_posted", crossed_and_posted},
                     {"outstanding_for_long", outstanding_for_long},
                     {"circle_of_two", circle_of_two},
                     {"circle_with_the_world", circle_with_the_world},
                     {"circle_of_three", circle_of_three},
                     {"slow_chain", slow_chain},
                     {"slow", slow},
                     {"busy", busy},
                     {"thread_that_waited", thread_that_waited},
                     {"new_thread", new_thread},
                     {"lock_over_a_barrier", lock_over_a_barrier},
                     {"crossed_locks", crossed_locks},
                     {"lock_twice", lock_twice},
                     {"lock_twice_cleared_by_a_thread", lock_twice_cleared_by_a_thread},
                     {"lock_at_the_end", lock_at_the_end}};
    int provided;
    if (shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) != 0)
        return 2;
    for (const auto& scenario : scenarios)
        if (argc > 1 && strcmp(scenario.name, argv[1]) == 0)
            scenario.run(shmem_my_pe());
    shmem_finalize();
    printf("survived\n");
    return 0;
}
