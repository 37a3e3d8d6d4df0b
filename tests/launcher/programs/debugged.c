/* Makes contexts, teams and requests, and calls look_here, at which the tests' debugger stops. With an argument PE 0
 * has sent operations to PE 1 before, which takes none of them: it runs without Heddle for ever. */
#include <shmemx.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static long cell[4], values[4] = {1, 2, 3, 4}, fetched;

struct handles {
    shmem_ctx_t ctx, destroyed_ctx, default_ctx, no_ctx, of_team, stray_ctx;
    shmem_team_t world, shared, ends, destroyed_team, no_team;
    shmemx_request_t no_request, complete, shared_request, ended, posted;
};

__attribute__((noinline)) static void look_here(const struct handles* handles) {
    __asm__ volatile("" ::"r"(handles) : "memory"); /* line: look */
}

int main(int argc, char** argv) {
    struct handles handles;
    (void)argv;
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes();
    memset(&handles, 0, sizeof handles);
    handles.default_ctx = SHMEM_CTX_DEFAULT;
    handles.world = SHMEM_TEAM_WORLD;
    handles.shared = SHMEM_TEAM_SHARED;
    handles.stray_ctx = (shmem_ctx_t)cell;
    shmem_ctx_create(SHMEM_CTX_SERIALIZED | SHMEM_CTX_NOSTORE, &handles.ctx);
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, n - 1, 2, NULL, 0, &handles.ends);
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, &handles.destroyed_team);
    shmem_team_destroy(handles.destroyed_team);
    if (handles.ends != SHMEM_TEAM_INVALID) {
        shmem_team_create_ctx(handles.ends, SHMEM_CTX_PRIVATE, &handles.of_team);
        shmem_team_sync(handles.ends);
    }
    /* Last of their kind, so that no other one gets their memory. */
    shmem_ctx_create(0, &handles.destroyed_ctx);
    shmem_ctx_destroy(handles.destroyed_ctx);
    shmemx_request_allocate(&handles.shared_request, SHMEMX_REQUEST_SHARED);
    shmemx_request_allocate(&handles.ended, SHMEMX_REQUEST_SHARED);
    shmemx_request_t request = handles.ended;
    shmemx_request_free(&request);
    shmemx_long_put_nbe(cell, values, 1, me, &handles.complete);
    shmem_barrier_all();
    if (argc == 1) {
        if (me == 0)
            shmemx_team_sync_nbe(SHMEM_TEAM_WORLD, &handles.posted); /* the others do not come */
    } else if (me == 0) {
        while (access("alone", F_OK) != 0) usleep(1000);
        shmem_ctx_long_put_nbi(handles.ctx, cell, values, 3, 1);
        shmemx_long_put_nbe(cell, values, 2, 1, &handles.posted);
        shmemx_long_put_nbe(cell + 2, values, 2, 1, &handles.posted);
        shmemx_long_atomic_fetch_nbe(&fetched, cell, 1, &handles.posted);
    } else {
        fclose(fopen("alone", "w"));
        for (volatile long i = 0;; ++i) {
        }
    }
    look_here(&handles);
    return 1; /* not without a debugger */
}
