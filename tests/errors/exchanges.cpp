// exchanges SCENARIO OTHER: wrong exchanges and plans. What must come of each is in test_exchanges.py. OTHER is the PE
// that differs from the rest. Prints "survived".
#include <shmemx.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr size_t kLong = 100000;
char dest[4 * kLong], source[4 * kLong];
bool other;
int me, n_pes;

// With both neighbors in the ring of PEs; bytes: to and from each.
void ring(size_t incoming, size_t outgoing, size_t count = 2) {
    const int neighbors[] = {(me + 1) % n_pes, (me + n_pes - 1) % n_pes};
    const size_t dest_counts[] = {incoming, incoming}, source_counts[] = {outgoing, outgoing};
    const size_t offsets[] = {0, kLong};
    shmemx_neighbor_alltoallv(SHMEM_TEAM_WORLD, neighbors, count, dest, dest_counts, offsets, source, source_counts,
                              offsets, 1);
}

void one_sided() {
    ring(8, 8, other ? 0 : 2);
}
void named_twice() {
    const int neighbors[] = {(me + 2) % n_pes, (me + 2) % n_pes};
    shmemx_neighbor_alltoall(SHMEM_TEAM_WORLD, neighbors, me < 2 || !other ? 1 : 2, dest, source, 8);
}
void expects_more() {
    ring(other ? 9 : 8, 8);
}
void expects_long() {
    ring(other ? kLong : 8, 8);
}
void sends_long() {
    ring(8, other ? kLong : 8);
}
void long_differs() {
    ring(kLong, other ? kLong - 1 : kLong);
}
void block_bytes() {
    const int neighbors[] = {(me + 1) % n_pes, (me + n_pes - 1) % n_pes};
    shmemx_neighbor_alltoall(SHMEM_TEAM_WORLD, neighbors, 2, dest, source, other ? 3 : 5);
}
void alltoallv_counts() {
    size_t counts[64], more[64], offsets[64];
    for (int i = 0; i < n_pes; ++i) {
        counts[i] = 3, more[i] = other && i == (me + 1) % n_pes ? 4 : 3;
        offsets[i] = static_cast<size_t>(i) * 8;
    }
    shmemx_alltoallv(SHMEM_TEAM_WORLD, dest, counts, offsets, source, more, offsets, 2);
}
// What one PE sends more than another one expects is found when that one waits again.
void sent_to_nobody() {
    ring(0, other ? 8 : 0);
    for (int i = 0; i < 3; ++i) shmem_sync_all();
    ring(8, 8);
}
void overlap() {
    const int self[] = {me, me};
    const size_t counts[] = {16, 16}, apart[] = {0, 16}, close[] = {0, 15};
    shmemx_neighbor_alltoallv(SHMEM_TEAM_WORLD, self, 2, dest, counts, close, source, counts, apart, 1);
}
void source_in_dest() {
    const int self[] = {me, me};
    const size_t counts[] = {16, 16}, to[] = {0, 32}, from[] = {20, 31};
    shmemx_neighbor_alltoallv(SHMEM_TEAM_WORLD, self, 2, dest, counts, to, dest, counts, from, 1);
}
// Sources may overlap, and blocks of source and dest alternate in one object.
void right() {
    const int self[] = {me, me};
    const size_t counts[] = {16, 16}, to[] = {0, 32}, from[] = {16, 16};
    for (int i = 0; i < 20; ++i) {
        shmemx_neighbor_alltoallv(SHMEM_TEAM_WORLD, self, 2, dest, counts, to, dest, counts, from, 1);
        ring(kLong, kLong);
    }
}

shmemx_request_t request = SHMEMX_REQUEST_NULL;

shmemx_plan_t recorded(shmem_team_t team = SHMEM_TEAM_WORLD) {
    shmemx_plan_t plan = SHMEMX_PLAN_NULL;
    const int self = shmem_team_my_pe(team);
    shmemx_plan_begin(&plan);
    shmemx_neighbor_alltoall_nbe(team, &self, 1, dest, source, 8, &request);
    shmemx_plan_end(&plan);
    return plan;
}
void freed_plan() {
    shmemx_plan_t plan = recorded();
    const shmemx_plan_t copy = plan;
    shmemx_plan_free(&plan);
    shmemx_request_start(copy, &request);
}
void no_plan() {
    shmemx_request_start(reinterpret_cast<shmemx_plan_t>(0x123456789a00), &request);
}
void null_plan() {
    shmemx_request_start(SHMEMX_PLAN_NULL, &request);
}
void begun_twice() {
    shmemx_plan_t plan, another;
    shmemx_plan_begin(&plan);
    shmemx_plan_begin(&another);
}
void not_begun() {
    shmemx_plan_t plan = recorded();
    shmemx_plan_end(&plan);
}
void another_ended() {
    shmemx_plan_t plan = recorded(), another;
    shmemx_plan_begin(&another);
    shmemx_plan_end(&plan);
}
void not_ended() {
    shmemx_plan_t plan;
    shmemx_plan_begin(&plan);
    shmemx_request_start(plan, &request);
}
void started_in_recording() {
    shmemx_plan_t plan = recorded(), another;
    shmemx_plan_begin(&another);
    shmemx_request_start(plan, &request);
}
// The others wait for what comes behind the second start: a collective of theirs would end the first one.
void started_twice() {
    static int started;
    shmemx_plan_t plan;
    shmemx_plan_begin(&plan);
    shmemx_team_sync_nbe(SHMEM_TEAM_WORLD, &request);
    shmemx_plan_end(&plan);
    if (other) {
        shmemx_request_start(plan, &request);
        shmemx_request_start(plan, &request);
        for (int pe = 0; pe < n_pes; ++pe) shmem_int_atomic_set(&started, 1, pe);
    }
    shmem_int_wait_until(&started, SHMEM_CMP_EQ, 1);
}
void team_destroyed() {
    shmem_team_t team, later;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n_pes, nullptr, 0, &team);
    const shmemx_plan_t plan = recorded(team);
    shmem_team_destroy(team);
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n_pes, nullptr, 0, &later);
    shmemx_request_start(plan, &request);
}
// One has recorded anew what the others start a second time.
void recorded_anew() {
    shmemx_plan_t plan = recorded();
    for (int i = 0; i < 2; ++i) {
        if (i == 1 && other)
            plan = recorded();
        shmemx_request_start(plan, &request);
        shmemx_request_wait(&request);
    }
    shmem_barrier_all();
}
// The same with both neighbors, so that each waits for another one.
void ring_recorded_anew() {
    const int neighbors[] = {(me + 1) % n_pes, (me + n_pes - 1) % n_pes};
    shmemx_plan_t plan = SHMEMX_PLAN_NULL;
    for (int i = 0; i < 8; ++i) {
        if (i == 0 || (i == 6 && other)) {
            shmemx_plan_begin(&plan);
            shmemx_neighbor_alltoall_nbe(SHMEM_TEAM_WORLD, neighbors, 2, dest, source, 8, &request);
            shmemx_plan_end(&plan);
        }
        shmemx_request_start(plan, &request);
        shmemx_request_wait(&request);
    }
}
void null_place() {
    shmemx_plan_begin(nullptr);
}

constexpr struct {
    const char* name;
    void (*run)();
} kScenarios[] = {{"one_sided", one_sided},
                  {"named_twice", named_twice},
                  {"expects_more", expects_more},
                  {"expects_long", expects_long},
                  {"sends_long", sends_long},
                  {"long_differs", long_differs},
                  {"block_bytes", block_bytes},
                  {"alltoallv_counts", alltoallv_counts},
                  {"sent_to_nobody", sent_to_nobody},
                  {"overlap", overlap},
                  {"source_in_dest", source_in_dest},
                  {"right", right},
                  {"freed_plan", freed_plan},
                  {"no_plan", no_plan},
                  {"null_plan", null_plan},
                  {"begun_twice", begun_twice},
                  {"not_begun", not_begun},
                  {"another_ended", another_ended},
                  {"not_ended", not_ended},
                  {"started_in_recording", started_in_recording},
                  {"started_twice", started_twice},
                  {"team_destroyed", team_destroyed},
                  {"recorded_anew", recorded_anew},
                  {"null_place", null_place},
                  {"ring_recorded_anew", ring_recorded_anew}};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3)
        return 2;
    shmem_init();
    me = shmem_my_pe(), n_pes = shmem_n_pes();
    other = me == atoi(argv[2]);
    for (const auto& scenario : kScenarios)
        if (strcmp(scenario.name, argv[1]) == 0)
            scenario.run();
    shmem_finalize();
    printf("survived\n");
    return 0;
}
