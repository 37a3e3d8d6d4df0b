/* Examples of the manual pages. What follows a line "== PAGE ==" up to the next one is on that page; the test of the
 * pages compiles all files into one program, and calls each function on each PE. */
#include <assert.h>
#include <shmemx.h>
#include <stdio.h>

/* == shmem_team_my_pe shmem_team_n_pes == */
void number_in_a_team(void) {
    int me = shmem_team_my_pe(SHMEM_TEAM_SHARED); /* PEs of this node */
    int n = shmem_team_n_pes(SHMEM_TEAM_SHARED);
    assert(0 <= me && me < n);
    assert(shmem_team_my_pe(SHMEM_TEAM_INVALID) == -1);
}

/* == shmem_team_get_config == */
void contexts_of_a_team(void) {
    shmem_team_config_t config;
    int bad = shmem_team_get_config(SHMEM_TEAM_WORLD,
                                    SHMEM_TEAM_NUM_CONTEXTS, &config);
    assert(!bad && config.num_contexts >= 0);
}

/* == shmem_team_translate_pe == */
void number_in_the_world(void) {
    int first_of_node =
        shmem_team_translate_pe(SHMEM_TEAM_SHARED, 0, SHMEM_TEAM_WORLD);
    assert(first_of_node >= 0);
}

/* == shmem_team_split_strided shmem_team_destroy == */
void even_numbers(void) {
    shmem_team_t even;
    int size = (shmem_n_pes() + 1) / 2;
    if (shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, size, NULL, 0,
                                 &even) != 0)
        shmem_global_exit(1);
    if (even != SHMEM_TEAM_INVALID) { /* this PE is a member */
        shmem_team_sync(even);
        shmem_team_destroy(even);
    }
}

/* == shmem_team_split_2d == */
void rows_and_columns(void) {
    shmem_team_t row, column;
    shmem_team_split_2d(SHMEM_TEAM_WORLD, 2, NULL, 0, &row, NULL, 0,
                        &column);
    assert(shmem_team_my_pe(row) == shmem_my_pe() % 2);
    assert(shmem_team_my_pe(column) == shmem_my_pe() / 2);
    shmem_team_destroy(row);
    shmem_team_destroy(column);
}

/* == shmem_team_ptr == */
void first_of_this_node(void) {
    static long shared;
    long* there = shmem_team_ptr(SHMEM_TEAM_SHARED, &shared, 0);
    assert(there); /* a PE of this node */
}

/* == shmem_ctx_create shmem_ctx_destroy == */
/* Waits for this thread's operations alone. */
void own_context(void) {
    static long from_left;
    shmem_ctx_t ctx;
    if (shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx) != 0)
        ctx = SHMEM_CTX_DEFAULT;
    shmem_p(ctx, &from_left, 1, (shmem_my_pe() + 1) % shmem_n_pes());
    shmem_ctx_quiet(ctx);
    if (ctx != SHMEM_CTX_DEFAULT)
        shmem_ctx_destroy(ctx);
}

/* == shmem_team_create_ctx shmem_ctx_get_team == */
void context_of_a_team(void) {
    static long from_left;
    shmem_ctx_t ctx;
    shmem_team_t team;
    if (shmem_team_create_ctx(SHMEM_TEAM_SHARED, 0, &ctx) != 0)
        shmem_global_exit(1);
    assert(shmem_ctx_get_team(ctx, &team) == 0);
    shmem_p(ctx, &from_left, 1, 0); /* PE 0 of that team */
    shmem_ctx_destroy(ctx);
}

/* == shmem_ctx_session_start == */
void a_burst(void) {
    static long slots[64];
    shmem_ctx_session_start(SHMEM_CTX_DEFAULT, SHMEM_CTX_SESSION_BATCH,
                            NULL, 0);
    for (int i = 0; i < 64; ++i) shmem_p(&slots[i], (long)i, 0);
    shmem_ctx_session_stop(SHMEM_CTX_DEFAULT);
    shmem_quiet();
}

/* == shmemx_pcntr_num == */
void counters_that_are_not_zero(void) {
    for (int i = 0; i < shmemx_pcntr_num(); ++i) {
        uint64_t value = shmemx_pcntr_get(i);
        if (value != 0)
            printf("%s %llu, %s\n", shmemx_pcntr_name(i),
                   (unsigned long long)value,
                   shmemx_pcntr_description(i));
    }
}

/* == shmemx_ctx_info == */
void memory_of_a_context(void) {
    shmemx_ctx_info_t info;
    assert(shmemx_ctx_info(SHMEM_CTX_DEFAULT, &info) == 0);
    assert(info.bytes >= HEDDLE_CONTEXT_BYTES);
}

/* == shmemx_ctx_quiet_local == */
void reuse_the_source(void) {
    static long there[100];
    long block[100] = {1};
    shmem_put_nbi(there, block, 100, 0);
    shmemx_ctx_quiet_local(SHMEM_CTX_DEFAULT);
    block[0] = 2; /* while the data may still be under way */
    while (!shmemx_ctx_quiet_test(SHMEM_CTX_DEFAULT)) {
        /* other work */
    }
}

/* == shmemx_progress == */
void compute_and_poll(void) {
    for (int part = 0; part < 10; ++part) {
        /* a millisecond of computation */
        shmemx_progress();
    }
}

/* == shmemx_progress_policy == */
void with_a_thread_for_progress(void) {
    if (shmemx_progress_policy("thread:block") != 0)
        shmem_global_exit(1);
    assert(shmemx_progress_network() != NULL);
    shmemx_progress_policy("auto");
}
