// Contexts of teams: PE numbers are those of the team, for every kind of operation; the team of a context; contexts of
// several threads; a team takes its contexts along when it is destroyed. Sessions change nothing but time. Contexts
// come and go in constant memory.
#include "collectives.h"

#include <pthread.h>
#include <cstdint>
#include <cstdio>

using namespace conformance;

namespace {

constexpr int kMost = 64;
uint64_t cells[kMost][4];  // on each PE: a row for each member of the team that writes
uint64_t sums, signals[kMost];
uint32_t words[kMost];
uint64_t* heap_cells;

int world_pe(const Group& group, int rank) {
    return group.start + rank * group.stride;
}

// Every kind of operation on member `to`; then its memory is looked at by its number in the world.
void operations(const Group& group, shmem_ctx_t ctx, int to, uint64_t value) {
    const int there = world_pe(group, to);
    const int mine = group.rank;
    uint64_t* row = cells[mine];
    const uint64_t pair[2] = {value + 1, value + 2};
    shmem_ctx_uint64_put(ctx, row, pair, 2, to);
    shmem_ctx_uint64_p(ctx, &row[2], value + 3, to);
    shmem_ctx_put32_nbi(ctx, &words[mine], &value, 1, to);
    shmem_ctx_uint64_iput(ctx, &heap_cells[mine * 4], pair, 2, 1, 2, to);
    shmem_ctx_uint64_atomic_set(ctx, &row[3], value + 4, to);
    shmem_ctx_uint64_atomic_add(ctx, &sums, value, to);
    shmem_ctx_uint64_put_signal(ctx, &heap_cells[mine * 4 + 1], &value, 1, &signals[mine], value, SHMEM_SIGNAL_SET, to);
    const int list[] = {to};
    shmem_ctx_pe_quiet(ctx, list, 1);
    shmem_ctx_quiet(ctx);
    CHECK_EQ(shmem_uint64_g(&row[0], there), value + 1);
    CHECK_EQ(shmem_uint64_g(&row[1], there), value + 2);
    CHECK_EQ(shmem_uint64_g(&row[2], there), value + 3);
    CHECK_EQ(shmem_uint64_g(&row[3], there), value + 4);
    CHECK_EQ(shmem_uint32_g(&words[mine], there), static_cast<uint32_t>(value));
    CHECK_EQ(shmem_uint64_g(&heap_cells[mine * 4], there), value + 1);
    CHECK_EQ(shmem_uint64_g(&heap_cells[mine * 4 + 1], there), value);
    CHECK_EQ(shmem_uint64_g(&heap_cells[mine * 4 + 2], there), value + 2);
    CHECK_EQ(shmem_uint64_g(&signals[mine], there), value);
    // And back.
    uint64_t got[2] = {};
    shmem_ctx_uint64_get(ctx, got, row, 2, to);
    CHECK_EQ(got[0], value + 1);
    CHECK_EQ(got[1], value + 2);
    shmem_ctx_uint64_iget(ctx, got, row, 1, 2, 2, to);
    CHECK_EQ(got[1], value + 3);
    shmem_ctx_get64_nbi(ctx, got, &row[3], 1, to);
    shmem_ctx_quiet(ctx);
    CHECK_EQ(got[0], value + 4);
    CHECK_EQ(shmem_ctx_uint64_g(ctx, &row[2], to), value + 3);
    CHECK_EQ(shmem_ctx_uint64_atomic_fetch(ctx, &row[3], to), value + 4);
    CHECK_EQ(shmem_ctx_uint64_atomic_swap(ctx, &row[3], 5, to), value + 4);
    CHECK_EQ(shmem_ctx_uint64_atomic_compare_swap(ctx, &row[3], 5, 6, to), 5);
    shmem_ctx_fence(ctx);
    CHECK_EQ(shmem_uint64_atomic_fetch(&row[3], there), 6);
}

void team_of(shmem_ctx_t ctx, shmem_team_t right) {
    shmem_team_t team = SHMEM_TEAM_INVALID;
    CHECK_EQ(shmem_ctx_get_team(ctx, &team), 0);
    CHECK(team == right);
}

void numbering(const std::vector<Group>& groups) {
    subject = "PE numbers of a team's context";
    for (const Group& group : groups) {
        if (group.member()) {
            shmem_ctx_t first, second;
            CHECK_EQ(shmem_team_create_ctx(group.team, 0, &first), 0);
            CHECK_EQ(shmem_team_create_ctx(group.team, SHMEM_CTX_SERIALIZED | SHMEM_CTX_NOSTORE, &second), 0);
            CHECK(first != second);
            team_of(first, group.team);
            team_of(second, group.team);
            uint64_t sent = 0;
            for (int to = 0; to < group.size; ++to) {
                for (shmem_ctx_t ctx : {first, second}) {
                    const uint64_t value = random_for(static_cast<uint64_t>(to), static_cast<uint64_t>(pe)).next() >> 8;
                    operations(group, ctx, to, value);
                    sent += value;
                }
            }
            static uint64_t all_sent, total, mine, received;
            mine = sent;
            CHECK_EQ(shmem_team_sync(group.team), 0);
            received = sums;
            CHECK_EQ(shmem_uint64_sum_reduce(group.team, &all_sent, &mine, 1), 0);
            CHECK_EQ(shmem_uint64_sum_reduce(group.team, &total, &received, 1), 0);
            CHECK_EQ(total, all_sent);
            shmem_ctx_destroy(second);
            shmem_ctx_destroy(first);
        }
        shmem_barrier_all();
        sums = 0;
        shmem_barrier_all();
    }
}

void none() {
    subject = "no team, no context";
    shmem_ctx_t ctx = SHMEM_CTX_DEFAULT;
    CHECK(shmem_team_create_ctx(SHMEM_TEAM_INVALID, 0, &ctx) != 0);
    CHECK(ctx == SHMEM_CTX_INVALID);
    shmem_team_t team = SHMEM_TEAM_WORLD;
    CHECK(shmem_ctx_get_team(SHMEM_CTX_INVALID, &team) != 0);
    CHECK(team == SHMEM_TEAM_INVALID);
    team_of(SHMEM_CTX_DEFAULT, SHMEM_TEAM_WORLD);
    CHECK_EQ(shmem_ctx_create(0, &ctx), 0);
    team_of(ctx, SHMEM_TEAM_WORLD);
    shmem_ctx_destroy(ctx);
    for (shmem_team_t predefined : {SHMEM_TEAM_WORLD, SHMEM_TEAM_SHARED}) {
        CHECK_EQ(shmem_team_create_ctx(predefined, SHMEM_CTX_PRIVATE, &ctx), 0);
        team_of(ctx, predefined);
        shmem_ctx_destroy(ctx);
    }
}

// As many contexts as a team was made for, and more; the team takes those along that are left.
void with_the_team() {
    subject = "contexts of a team that is destroyed";
    for (int round = 0; round < 5; ++round) {
        const shmem_team_config_t config = {10};
        shmem_team_t team;
        CHECK_EQ(
            shmem_team_split_strided(SHMEM_TEAM_WORLD, n_pes - 1, -1, n_pes, &config, SHMEM_TEAM_NUM_CONTEXTS, &team),
            0);
        const Group group = {team, n_pes - 1, -1, n_pes, n_pes - 1 - pe};
        for (int i = 0; i < 30; ++i) {
            shmem_ctx_t ctx;
            CHECK_EQ(shmem_team_create_ctx(team, i % 2 ? SHMEM_CTX_PRIVATE : 0, &ctx), 0);
            if (i % 10 == 0)
                operations(group, ctx, i % n_pes, static_cast<uint64_t>(i));
            if (i % 3 == 0)
                shmem_ctx_destroy(ctx);
        }
        shmem_team_destroy(team);
    }
    shmem_barrier_all();
}

struct Worker {
    const Group* group;
    uint64_t number;
};

// Threads with a context each on the same teams, in cells of their own.
void* thread_with_contexts(void* argument) {
    const Worker& worker = *static_cast<Worker*>(argument);
    const Group& group = *worker.group;
    for (uint64_t round = 0; round < 200; ++round) {
        shmem_ctx_t ctx;
        CHECK_EQ(shmem_team_create_ctx(group.team, SHMEM_CTX_PRIVATE, &ctx), 0);
        const int to = static_cast<int>((round + worker.number) % static_cast<uint64_t>(group.size));
        uint64_t* cell = &cells[group.rank][worker.number];
        shmem_ctx_uint64_p(ctx, cell, round * 4 + worker.number, to);
        shmem_ctx_quiet(ctx);
        CHECK_EQ(shmem_uint64_g(cell, world_pe(group, to)), round * 4 + worker.number);
        shmem_ctx_destroy(ctx);
    }
    return nullptr;
}

void threads(const std::vector<Group>& groups) {
    subject = "contexts of several threads";
    for (const Group& group : groups) {
        shmem_barrier_all();  // a row of cells is another PE's in another group
        if (!group.member())
            continue;
        pthread_t handles[4];
        Worker workers[4];
        for (uint64_t i = 0; i < 4; ++i) {
            workers[i] = {&group, i};
            CHECK_EQ(pthread_create(&handles[i], nullptr, thread_with_contexts, &workers[i]), 0);
        }
        for (pthread_t handle : handles) pthread_join(handle, nullptr);
    }
    shmem_barrier_all();
}

void sessions(const std::vector<Group>& groups) {
    subject = "sessions";
    shmem_ctx_session_start(SHMEM_CTX_INVALID, 0, nullptr, 0);
    shmem_ctx_session_stop(SHMEM_CTX_INVALID);
    const shmem_ctx_session_config_t config = {1000};
    for (const Group& group : groups) {
        shmem_barrier_all();  // a row of cells is another PE's in another group
        if (!group.member())
            continue;
        shmem_ctx_t ctx;
        CHECK_EQ(shmem_team_create_ctx(group.team, 0, &ctx), 0);
        for (long options : {0L, SHMEM_CTX_SESSION_BATCH}) {
            for (long mask : {0L, SHMEM_CTX_SESSION_TOTAL_OPS}) {
                shmem_ctx_session_start(ctx, options, mask ? &config : nullptr, mask);
                operations(group, ctx, group.size - 1, 77);
                shmem_ctx_session_start(ctx, SHMEM_CTX_SESSION_BATCH, &config, 0);  // adds to the open one
                operations(group, ctx, 0, 78);
                shmem_ctx_session_stop(ctx);
                operations(group, ctx, 0, 79);
            }
        }
        shmem_ctx_session_start(ctx, SHMEM_CTX_SESSION_BATCH, &config, SHMEM_CTX_SESSION_TOTAL_OPS);
        shmem_ctx_destroy(ctx);  // with its session open
    }
    shmem_barrier_all();
    shmem_ctx_session_start(SHMEM_CTX_DEFAULT, SHMEM_CTX_SESSION_BATCH, nullptr, 0);
    operations(groups[0], SHMEM_CTX_DEFAULT, (pe + 1) % n_pes, 5);
    shmem_ctx_session_stop(SHMEM_CTX_DEFAULT);
    shmem_barrier_all();
}

void cycles(const std::vector<Group>& groups, int times) {
    subject = "create and destroy";
    long before = 0;
    for (int i = 0; i < times; ++i) {
        if (i == times / 10)
            before = mapped_pages();
        const Group& group = groups[static_cast<size_t>(i) % groups.size()];
        shmem_ctx_t ctx, other;
        CHECK_EQ(shmem_ctx_create(0, &ctx), 0);
        if (group.member()) {
            CHECK_EQ(shmem_team_create_ctx(group.team, 0, &other), 0);
            shmem_ctx_destroy(other);
        }
        shmem_ctx_destroy(ctx);
    }
    CHECK(mapped_pages() - before < 64);
}

}  // namespace

int main() {
    start("team_contexts");
    heap_cells = static_cast<uint64_t*>(shmem_calloc(kMost * 4, sizeof(uint64_t)));
    CHECK(heap_cells && n_pes <= kMost);
    std::vector<Group> groups = make_groups();
    none();
    numbering(groups);
    with_the_team();
    sessions(groups);
    threads(groups);
    cycles(groups, n_pes == 1 ? 1000000 : 50000);
    destroy_groups(groups);
    return finish();
}
