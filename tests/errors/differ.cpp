// differ SCENARIO: PEs that do not call the same collectives, or not with the same arguments, and threads that are in
// those of one team at once. What must come of each is in test_differ.py. `other` is the one PE that differs from the
// rest: it is the second argument. Prints "survived".
#include <shmemx.h>

#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace {

long dest[64], source[64], flag;
long psync[SHMEM_REDUCE_SYNC_SIZE], work[SHMEM_REDUCE_MIN_WRKDATA_SIZE];
bool other;  // this PE is the one
int n_pes;

void functions() {
    if (other)
        shmem_long_broadcast(SHMEM_TEAM_WORLD, dest, source, 8, 0);
    else
        shmem_long_sum_reduce(SHMEM_TEAM_WORLD, dest, source, 8);
}
void operations() {
    if (other)
        shmem_long_max_reduce(SHMEM_TEAM_WORLD, dest, source, 8);
    else
        shmem_long_sum_reduce(SHMEM_TEAM_WORLD, dest, source, 8);
}
void types() {
    if (other)
        shmem_int_alltoall(SHMEM_TEAM_WORLD, reinterpret_cast<int*>(dest), reinterpret_cast<int*>(source), 4);
    else
        shmem_long_alltoall(SHMEM_TEAM_WORLD, dest, source, 4);
}
void counts() {
    shmem_long_fcollect(SHMEM_TEAM_WORLD, dest, source, other ? 3 : 5);
}
// What is found in every run where the other PEs are on other nodes.
void counts_reduced() {
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, dest, source, other ? 3 : 5);
}
// Each collective whose nelems must be alike: argument 3 is that of `other`, 4 that of the rest.
size_t counts_of_nelems[2];
template <class Collective>
void with_nelems(Collective collective) {
    constexpr size_t kElements = 256 * 1024;
    auto* const both = static_cast<long*>(shmem_malloc(2 * kElements * sizeof(long)));
    collective(both, both + kElements, counts_of_nelems[other ? 0 : 1]);
    shmem_barrier_all();
}
void nelems_broadcast() {
    with_nelems(
        [](long* to, long* from, size_t nelems) { shmem_long_broadcast(SHMEM_TEAM_WORLD, to, from, nelems, 0); });
}
void nelems_fcollect() {
    with_nelems([](long* to, long* from, size_t nelems) { shmem_long_fcollect(SHMEM_TEAM_WORLD, to, from, nelems); });
}
void nelems_alltoall() {
    with_nelems([](long* to, long* from, size_t nelems) { shmem_long_alltoall(SHMEM_TEAM_WORLD, to, from, nelems); });
}
void nelems_alltoalls() {
    with_nelems(
        [](long* to, long* from, size_t nelems) { shmem_long_alltoalls(SHMEM_TEAM_WORLD, to, from, 2, 3, nelems); });
}
void nelems_reduce() {
    with_nelems([](long* to, long* from, size_t nelems) { shmem_long_sum_reduce(SHMEM_TEAM_WORLD, to, from, nelems); });
}
void nelems_reduce_double() {
    with_nelems([](long* to, long* from, size_t nelems) {
        shmem_double_sum_reduce(SHMEM_TEAM_WORLD, reinterpret_cast<double*>(to), reinterpret_cast<double*>(from),
                                nelems);
    });
}
void nelems_inscan() {
    with_nelems([](long* to, long* from, size_t nelems) { shmem_long_sum_inscan(SHMEM_TEAM_WORLD, to, from, nelems); });
}
void nelems_exscan() {
    with_nelems([](long* to, long* from, size_t nelems) { shmem_long_sum_exscan(SHMEM_TEAM_WORLD, to, from, nelems); });
}
void roots() {
    shmem_long_broadcast(SHMEM_TEAM_WORLD, dest, source, 8, other ? 1 : 0);
}
void places() {
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, other ? dest + 16 : dest, source, 8);
}
void order() {
    if (other)
        shmem_team_sync(SHMEM_TEAM_WORLD);
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, dest, source, 8);
    if (!other)
        shmem_team_sync(SHMEM_TEAM_WORLD);
}
// All PEs, in another order, behind collectives that are alike.
void team() {
    shmem_team_t team;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, n_pes - 1, -1, n_pes, nullptr, 0, &team);
    shmem_team_sync(team);
    for (int i = 0; i < 40; ++i) shmem_long_collect(team, dest, source, static_cast<size_t>(shmem_my_pe()) + 1);
    shmem_long_fcollect(team, dest, source, other ? 3 : 5);
}
void splits() {
    shmem_team_t team;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, other ? 1 : 2, nullptr, 0, &team);
}
void split_alone() {
    shmem_team_t team;
    if (other)
        shmem_team_split_2d(SHMEM_TEAM_WORLD, 2, nullptr, 0, &team, nullptr, 0, &team);
    else
        shmem_sync_all();
}
void posted() {
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    if (other)
        shmemx_long_max_reduce_nbe(SHMEM_TEAM_WORLD, dest, source, 8, &request);
    else
        shmemx_long_sum_reduce_nbe(SHMEM_TEAM_WORLD, dest, source, 8, &request);
    shmemx_request_wait(&request);
}
void posted_alone() {
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    if (other)
        shmemx_team_barrier_nbe(SHMEM_TEAM_WORLD, &request);
}
// The first one is right, so that the second one is in another instance of the team, which PEs that have not posted two
// do not know.
void post_first() {
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    shmemx_long_sum_reduce_nbe(SHMEM_TEAM_WORLD, dest, source, 8, &request);
    shmemx_request_wait(&request);
}
void posted_or_blocking() {
    post_first();
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    if (other)
        shmemx_long_sum_reduce_nbe(SHMEM_TEAM_WORLD, dest, source, 8, &request);
    else
        shmem_long_sum_reduce(SHMEM_TEAM_WORLD, dest, source, 8);
    shmemx_request_wait(&request);
}
void posted_second_alone() {
    post_first();
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    if (other)
        shmemx_team_barrier_nbe(SHMEM_TEAM_WORLD, &request);
    shmemx_request_wait(&request);
}
// The same on a team that lies where an earlier one has used both instances.
void posted_on_a_later_team() {
    shmem_team_t team;
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n_pes, nullptr, 0, &team);
    for (int i = 0; i < 8; ++i) shmemx_team_sync_nbe(team, &request);
    shmemx_request_wait(&request);
    shmem_team_destroy(team);
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n_pes, nullptr, 0, &team);
    for (int i = 0; i < (other ? 2 : 1); ++i) {
        shmemx_team_sync_nbe(team, &request);
        shmemx_request_wait(&request);
    }
}
void active_sets() {
    if (other)
        shmem_long_max_to_all(dest, source, 8, 0, 0, n_pes, work, psync);
    else
        shmem_long_sum_to_all(dest, source, 8, 0, 0, n_pes, work, psync);
}
// `other` comes to finalize.
void barrier_missed() {
    if (!other)
        shmem_barrier_all();
}
void malloc_alone() {
    if (other)
        shmem_malloc(64);
}

// What is found in every run.
void malloc_sizes() {
    shmem_malloc(other ? 8 : 80);
}
void malloc_nothing() {
    shmem_malloc(other ? 0 : 80);
    shmem_barrier_all();
}
void calloc_sizes() {
    shmem_calloc(other ? 3 : 5, 8);
}
void align_sizes() {
    shmem_align(64, other ? 8 : 80);
}
void alignments() {
    shmem_align(other ? 32 : 64, 80);
}
void hints_sizes() {
    shmem_malloc_with_hints(other ? 8 : 80, SHMEM_MALLOC_ATOMICS_REMOTE);
}
void realloc_sizes() {
    shmem_realloc(shmem_malloc(80), other ? 8 : 160);
}
void realloc_pointers() {
    void* const both[] = {shmem_malloc(80), shmem_malloc(80)};
    shmem_realloc(both[other], 160);
}
void free_pointers() {
    void* const both[] = {shmem_malloc(80), shmem_malloc(80)};
    shmem_free(both[other]);
}
void malloc_and_free() {
    void* const one = shmem_malloc(80);
    if (other)
        shmem_free(one);
    else
        shmem_malloc(80);
}
void malloc_and_barrier() {
    if (other)
        shmem_barrier_all();
    else
        shmem_malloc(80);
}

// Two threads of PE 0 in `body`, which neither can leave, as the other PEs never come.
template <class Body>
void two_threads(Body body) {
    if (shmem_my_pe() == 0) {
        std::thread thread(body);
        body();
        thread.join();
    } else {
        shmem_long_wait_until(&flag, SHMEM_CMP_NE, 0);
    }
}
void two_in_barrier() {
    two_threads([] { shmem_barrier_all(); });
}
void two_in_team() {
    shmem_team_t team;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n_pes, nullptr, 0, &team);
    two_threads([=] { shmem_long_sum_reduce(team, dest, source, 8); });
}
void two_in_active_set() {
    two_threads([] { shmem_barrier(0, 0, n_pes, psync); });
}
void two_different() {
    if (shmem_my_pe() == 0) {
        std::thread thread([] { shmem_sync_all(); });
        shmem_malloc(80);
        thread.join();
    } else {
        shmem_long_wait_until(&flag, SHMEM_CMP_NE, 0);
    }
}
void one_posts() {
    post_first();
    if (shmem_my_pe() == 0) {
        std::thread thread([] { shmem_team_sync(SHMEM_TEAM_WORLD); });
        sleep(1);  // it is in there by then
        shmemx_request_t request = SHMEMX_REQUEST_NULL;
        shmemx_team_sync_nbe(SHMEM_TEAM_WORLD, &request);
        thread.join();
    } else {
        shmem_long_wait_until(&flag, SHMEM_CMP_NE, 0);
    }
}
void group_and_one() {
    if (shmem_my_pe() == 0) {
        std::thread group[] = {std::thread([] { shmemx_team_sync_mt(SHMEM_TEAM_WORLD, 0, 2); }),
                               std::thread([] { shmemx_team_sync_mt(SHMEM_TEAM_WORLD, 1, 2); })};
        shmem_sync_all();
        for (std::thread& thread : group) thread.join();
    } else {
        shmem_long_wait_until(&flag, SHMEM_CMP_NE, 0);
    }
}

// All that is right: threads with teams of their own, thread groups, and blocking ones behind posted ones, many times.
void right() {
    constexpr int kTimes = 200;
    shmem_team_t teams[3];
    for (shmem_team_t& team : teams) shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n_pes, nullptr, 0, &team);
    std::thread blocking([&] {
        for (int i = 0; i < kTimes; ++i) shmem_long_sum_reduce(teams[0], dest, source, 8);
    });
    std::thread posting([&] {
        shmemx_request_t request = SHMEMX_REQUEST_NULL;
        for (int i = 0; i < kTimes; ++i) {
            shmemx_long_sum_reduce_nbe(teams[1], dest + 8, source, 8, &request);
            shmemx_team_sync_nbe(teams[1], &request);
            if (i % 3 == 0)
                shmem_team_sync(teams[1]);
            if (i % 7 == 0)
                shmemx_request_wait(&request);
        }
        shmemx_request_wait(&request);
    });
    const auto in_group = [&](int thread) {
        for (int i = 0; i < kTimes / 4; ++i) {
            shmemx_long_sum_reduce_mt(teams[2], dest + 16, source, 8, thread, 2);
            shmemx_team_sync_mt(teams[2], thread, 2);
        }
    };
    std::thread group[] = {std::thread(in_group, 0), std::thread(in_group, 1)};
    for (int i = 0; i < kTimes; ++i) {
        if (i % 10 == 0)
            shmem_free(shmem_malloc(80));
        shmem_sync_all();
    }
    blocking.join();
    posting.join();
    for (std::thread& thread : group) thread.join();
    for (const shmem_team_t team : teams) shmem_team_destroy(team);
}

constexpr struct {
    const char* name;
    void (*run)();
} kScenarios[] = {{"functions", functions},
                  {"operations", operations},
                  {"types", types},
                  {"counts", counts},
                  {"counts_reduced", counts_reduced},
                  {"nelems_broadcast", nelems_broadcast},
                  {"nelems_fcollect", nelems_fcollect},
                  {"nelems_alltoall", nelems_alltoall},
                  {"nelems_alltoalls", nelems_alltoalls},
                  {"nelems_reduce", nelems_reduce},
                  {"nelems_reduce_double", nelems_reduce_double},
                  {"nelems_inscan", nelems_inscan},
                  {"nelems_exscan", nelems_exscan},
                  {"roots", roots},
                  {"places", places},
                  {"order", order},
                  {"team", team},
                  {"splits", splits},
                  {"split_alone", split_alone},
                  {"posted", posted},
                  {"posted_alone", posted_alone},
                  {"posted_or_blocking", posted_or_blocking},
                  {"posted_second_alone", posted_second_alone},
                  {"posted_on_a_later_team", posted_on_a_later_team},
                  {"active_sets", active_sets},
                  {"barrier_missed", barrier_missed},
                  {"malloc_alone", malloc_alone},
                  {"malloc_sizes", malloc_sizes},
                  {"malloc_nothing", malloc_nothing},
                  {"calloc_sizes", calloc_sizes},
                  {"align_sizes", align_sizes},
                  {"alignments", alignments},
                  {"hints_sizes", hints_sizes},
                  {"realloc_sizes", realloc_sizes},
                  {"realloc_pointers", realloc_pointers},
                  {"free_pointers", free_pointers},
                  {"malloc_and_free", malloc_and_free},
                  {"malloc_and_barrier", malloc_and_barrier},
                  {"two_in_barrier", two_in_barrier},
                  {"two_in_team", two_in_team},
                  {"two_in_active_set", two_in_active_set},
                  {"two_different", two_different},
                  {"group_and_one", group_and_one},
                  {"one_posts", one_posts},
                  {"right", right}};

}  // namespace

int main(int argc, char** argv) {
    int provided;
    if (argc < 3 || shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) != 0)
        return 2;
    other = shmem_my_pe() == atoi(argv[2]);
    n_pes = shmem_n_pes();
    for (int i = 0; i < 2 && argc > 3 + i; ++i) counts_of_nelems[i] = strtoul(argv[3 + i], nullptr, 10);
    for (const auto& scenario : kScenarios)
        if (strcmp(scenario.name, argv[1]) == 0)
            scenario.run();
    shmem_finalize();
    printf("survived\n");
    return 0;
}
