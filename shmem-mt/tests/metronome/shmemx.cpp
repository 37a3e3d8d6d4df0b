// Heddle's extensions: requests, collectives of all threads, non-blocking collectives.
#include <cstring>
#include <functional>
#include <utility>

#include "context.hpp"

using namespace metronome;

// ---- requests ----

namespace {

shmem_ctx_t operations_of(shmemx_request_t* request) {
    if (*request == nullptr)
        *request = new metronome_request{};
    return &(*request)->operations;
}

// The collective is done by another task; none of its kind is under way.
void post(shmemx_request_t* request, std::function<void()> collective) {
    spend(settings.post.of());
    operations_of(request);
    (*request)->collective = start_helper(std::move(collective));
}

// What the last of all threads of this PE to come does for all of them.
template <class F>
int by_all(shmem_team_t team, int threads, F&& todo) {
    static int come[kMostTeams];
    if (++come[team] < threads) {
        block(State::kMeets, &come[team]);
        return 0;
    }
    come[team] = 0;
    const int status = todo();
    wake_blocked(State::kMeets, &come[team]);
    return status;
}

}  // namespace

int shmemx_request_allocate(shmemx_request_t* request, long) {
    *request = new metronome_request{};
    (*request)->stays = true;
    return 0;
}

void shmemx_request_free(shmemx_request_t* request) {
    delete *request;
    *request = SHMEMX_REQUEST_NULL;
}

void shmemx_request_fence(shmemx_request_t*) {
    spend(settings.fence.of());
}

void shmemx_request_wait(shmemx_request_t* request) {
    if (*request != nullptr) {
        if ((*request)->collective != nullptr)
            join_helper((*request)->collective);
        (*request)->collective = nullptr;
        reach((*request)->operations.complete);
        if (!(*request)->stays)
            shmemx_request_free(request);
    }
    spend(settings.request.of());
}

void shmemx_putmem_nbe(void* dest, const void* source, size_t bytes, int pe, shmemx_request_t* request) {
    shmem_ctx_putmem_nbi(operations_of(request), dest, source, bytes, pe);
}

void shmemx_putmem_signal_nbe(void* dest, const void* source, size_t bytes, uint64_t* signal, uint64_t value,
                              int operation, int pe, shmemx_request_t* request) {
    shmem_ctx_putmem_signal_nbi(operations_of(request), dest, source, bytes, signal, value, operation, pe);
}

void shmemx_getmem_nbe(void* dest, const void* source, size_t bytes, int pe, shmemx_request_t* request) {
    shmem_ctx_getmem_nbi(operations_of(request), dest, source, bytes, pe);
}

void shmemx_long_atomic_fetch_add_nbe(long* fetch, long* dest, long value, int pe, shmemx_request_t* request) {
    shmem_ctx_long_atomic_fetch_add_nbi(operations_of(request), fetch, dest, value, pe);
}

void shmemx_ctx_putmem_nbe(shmem_ctx_t, void* dest, const void* source, size_t bytes, int pe,
                           shmemx_request_t* request) {
    shmemx_putmem_nbe(dest, source, bytes, pe, request);
}

void shmemx_ctx_putmem_signal_nbe(shmem_ctx_t, void* dest, const void* source, size_t bytes, uint64_t* signal,
                                  uint64_t value, int operation, int pe, shmemx_request_t* request) {
    shmemx_putmem_signal_nbe(dest, source, bytes, signal, value, operation, pe, request);
}

void shmemx_ctx_getmem_nbe(shmem_ctx_t, void* dest, const void* source, size_t bytes, int pe,
                           shmemx_request_t* request) {
    shmemx_getmem_nbe(dest, source, bytes, pe, request);
}

void shmemx_ctx_long_atomic_fetch_add_nbe(shmem_ctx_t, long* fetch, long* dest, long value, int pe,
                                          shmemx_request_t* request) {
    shmemx_long_atomic_fetch_add_nbe(fetch, dest, value, pe, request);
}

void shmemx_long_atomic_fetch_nbe(long* fetch, const long* source, int pe, shmemx_request_t* request) {
    shmem_ctx_long_atomic_fetch_nbi(operations_of(request), fetch, source, pe);
}

void shmemx_long_atomic_compare_swap_nbe(long* fetch, long* dest, long cond, long value, int pe,
                                         shmemx_request_t* request) {
    shmem_ctx_long_atomic_compare_swap_nbi(operations_of(request), fetch, dest, cond, value, pe);
}

void shmemx_uint64_atomic_xor_nbe(uint64_t* dest, uint64_t value, int pe, shmemx_request_t* request) {
    update_in_flight(operations_of(request), nullptr, reinterpret_cast<long*>(dest), pe,
                     [=](long old) { return old ^ static_cast<long>(value); });
}

void shmemx_ctx_long_atomic_fetch_nbe(shmem_ctx_t, long* fetch, const long* source, int pe, shmemx_request_t* request) {
    shmemx_long_atomic_fetch_nbe(fetch, source, pe, request);
}

void shmemx_ctx_long_atomic_compare_swap_nbe(shmem_ctx_t, long* fetch, long* dest, long cond, long value, int pe,
                                             shmemx_request_t* request) {
    shmemx_long_atomic_compare_swap_nbe(fetch, dest, cond, value, pe, request);
}

void shmemx_ctx_uint64_atomic_xor_nbe(shmem_ctx_t, uint64_t* dest, uint64_t value, int pe, shmemx_request_t* request) {
    shmemx_uint64_atomic_xor_nbe(dest, value, pe, request);
}

int shmemx_ctx_info(shmem_ctx_t ctx, shmemx_ctx_info_t* info) {
    info->given = ctx->options;
    info->rails = 1;
    info->order = SHMEMX_ORDER_RAIL;
    return 0;
}

// ---- collectives of all threads, and non-blocking ones ----

int shmemx_team_sync_mt(shmem_team_t team, int, int threads) {
    return by_all(team, threads, [=] { return shmem_team_sync(team); });
}

int shmemx_team_barrier_mt(shmem_team_t team, int, int threads) {
    return by_all(team, threads, [=] {
        complete(SHMEM_CTX_DEFAULT);
        meet(world->teams[team], settings.barrier.of(), kBarrierKind);
        return 0;
    });
}

int shmemx_long_broadcast_mt(shmem_team_t team, long* dest, const long* source, size_t nelems, int root, int,
                             int threads) {
    return by_all(team, threads, [=] { return shmem_long_broadcast(team, dest, source, nelems, root); });
}

int shmemx_long_collect_mt(shmem_team_t team, long* dest, const long* source, size_t nelems, int, int threads) {
    return by_all(team, threads, [=] { return shmem_long_collect(team, dest, source, nelems); });
}

int shmemx_long_fcollect_mt(shmem_team_t team, long* dest, const long* source, size_t nelems, int, int threads) {
    return by_all(team, threads, [=] { return shmem_long_fcollect(team, dest, source, nelems); });
}

int shmemx_long_alltoall_mt(shmem_team_t team, long* dest, const long* source, size_t nelems, int, int threads) {
    return by_all(team, threads, [=] { return shmem_long_alltoall(team, dest, source, nelems); });
}

int shmemx_double_sum_reduce_mt(shmem_team_t team, double* dest, const double* source, size_t nelems, int,
                                int threads) {
    return by_all(team, threads, [=] { return shmem_double_sum_reduce(team, dest, source, nelems); });
}

int shmemx_long_max_reduce_mt(shmem_team_t team, long* dest, const long* source, size_t nelems, int, int threads) {
    return by_all(team, threads, [=] { return shmem_long_max_reduce(team, dest, source, nelems); });
}

void shmemx_long_broadcast_nbe(shmem_team_t, long* dest, const long* source, size_t nelems, int root,
                               shmemx_request_t* request) {
    post(request, [=] { shmem_long_broadcast(kNonBlockingTeam, dest, source, nelems, root); });
}

void shmemx_long_fcollect_nbe(shmem_team_t, long* dest, const long* source, size_t nelems, shmemx_request_t* request) {
    post(request, [=] { shmem_long_fcollect(kNonBlockingTeam, dest, source, nelems); });
}

void shmemx_long_alltoall_nbe(shmem_team_t, long* dest, const long* source, size_t nelems, shmemx_request_t* request) {
    post(request, [=] { shmem_long_alltoall(kNonBlockingTeam, dest, source, nelems); });
}

void shmemx_double_sum_reduce_nbe(shmem_team_t, double* dest, const double* source, size_t nelems,
                                  shmemx_request_t* request) {
    post(request, [=] { shmem_double_sum_reduce(kNonBlockingTeam, dest, source, nelems); });
}

void shmemx_long_sum_reduce_nbe(shmem_team_t, long* dest, const long* source, size_t nelems,
                                shmemx_request_t* request) {
    post(request, [=] { shmem_long_sum_reduce(kNonBlockingTeam, dest, source, nelems); });
}

void shmemx_progress() {}

int shmemx_progress_policy(const char* policy) {
    return std::strcmp(policy, "auto") == 0 || std::strcmp(policy, "manual") == 0 ? 0 : 1;
}
