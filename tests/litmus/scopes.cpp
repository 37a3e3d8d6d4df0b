// How far completion and order reach: contexts, teams, collectives, sessions, threads, locks (9.2, 9.5, 9.9, 9.10, 9.13).
#include "litmus.h"

#include <thread>

namespace litmus {
namespace {

using enum Kind;

void receive(const Round& r) {
    shmem_long_wait_until(r.flag, SHMEM_CMP_EQ, 1);
    r.out(0, shmem_long_g(r.x, r.at(1)));
}

// A put on one context, a fence or quiet on one, the flag on one; all to role 1.
template <typename Order>
void on_contexts(const Round& r, shmem_ctx_t of_put, Order order, shmem_ctx_t of_flag) {
    if (r.role == 0) {
        shmem_ctx_long_p(of_put, r.x, 1, r.at(1));
        order();
        shmem_ctx_long_atomic_set(of_flag, r.flag, 1, r.at(1));
    } else if (r.role == 1) {
        receive(r);
    }
}

// A put by role 0, a collective of all, a read by role 1 of its own memory.
template <typename Collective>
void put_then_collective(const Round& r, shmem_ctx_t ctx, Collective collective) {
    if (r.role == 0)
        shmem_ctx_long_p(ctx, r.x, 1, r.at(1));
    collective();
    if (r.role == 1)
        r.out(0, shmem_long_g(r.x, r.at(1)));
}

// The put by a thread of its own, which is over before the rest.
template <void (*order)()>
void put_by_a_thread(const Round& r) {
    if (r.role == 0) {
        std::thread([&r] { shmem_long_p(r.x, 1, r.at(1)); }).join();
        order();
        shmem_long_atomic_set(r.flag, 1, r.at(1));
    } else if (r.role == 1) {
        receive(r);
    }
}

void nothing() {}

// Roles 0 and 1 increment x of role 0 under a lock: a get, and a put on the context.
void increment_under_lock(const Round& r, shmem_ctx_t ctx) {
    if (r.role < 2) {
        shmem_set_lock(r.lock);
        shmem_ctx_long_p(ctx, r.x, shmem_long_g(r.x, r.at(0)) + 1, r.at(0));
        shmem_clear_lock(r.lock);
    }
}

void final_x_of_role_0(const Round& r) {
    if (r.role == 0)
        r.out(0, load(r.x));
}

const Test kTests[] = {
    {"ctx_fence",
     2,
     {"ctx_p(c, x@1, 1); ctx_fence(c); ctx_set(c, flag@1, 1)", "wait(flag); r0 = g(x@1)"},
     [](const Round& r) { on_contexts(r, r.ctx, [&] { shmem_ctx_fence(r.ctx); }, r.ctx); },
     nullptr,
     {{"1", kStrong}, {"0", kForbidden}},
     "9.12.1: a fence orders its context."},
    {"ctx_fence_other",
     2,
     {"ctx_p(c, x@1, 1); ctx_fence(c); set(flag@1, 1)", "wait(flag); r0 = g(x@1)"},
     [](const Round& r) { on_contexts(r, r.ctx, [&] { shmem_ctx_fence(r.ctx); }, SHMEM_CTX_DEFAULT); },
     nullptr,
     {{"1", kStrong}, {"0", kWeak}},
     "9.5, 9.12.1: each context has an order of its own, and the flag is on another one."},
    {"ctx_quiet",
     2,
     {"ctx_p(c, x@1, 1); ctx_quiet(c); set(flag@1, 1)", "wait(flag); r0 = g(x@1)"},
     [](const Round& r) { on_contexts(r, r.ctx, [&] { shmem_ctx_quiet(r.ctx); }, SHMEM_CTX_DEFAULT); },
     nullptr,
     {{"1", kStrong}, {"0", kForbidden}},
     "9.12.2: the put is complete before the flag is sent, on whichever context."},
    {"ctx_quiet_other",
     2,
     {"ctx_p(c, x@1, 1); quiet; set(flag@1, 1)", "wait(flag); r0 = g(x@1)"},
     [](const Round& r) { on_contexts(r, r.ctx, shmem_quiet, SHMEM_CTX_DEFAULT); },
     nullptr,
     {{"1", kStrong}, {"0", kWeak}},
     "9.12.2: a quiet completes what is on its context, here the default one."},
    {"ctx_barrier",
     2,
     {"ctx_p(c, x@1, 1); barrier_all", "barrier_all; r0 = g(x@1)"},
     [](const Round& r) { put_then_collective(r, r.ctx, shmem_barrier_all); },
     nullptr,
     {{"1", kStrong}, {"0", kWeak}},
     "9.10.1: a barrier completes what is on the default context."},
    {"ctx_destroy",
     2,
     {"ctx_create(c); ctx_p(c, x@1, 1); ctx_destroy(c); set(flag@1, 1)", "wait(flag); r0 = g(x@1)"},
     [](const Round& r) {
         if (r.role == 0) {
             shmem_ctx_t ctx = SHMEM_CTX_INVALID;
             if (shmem_ctx_create(SHMEM_CTX_SERIALIZED, &ctx) != 0)
                 return;  // no register is set, which is no outcome
             shmem_ctx_long_p(ctx, r.x, 1, r.at(1));
             shmem_ctx_destroy(ctx);
             shmem_long_atomic_set(r.flag, 1, r.at(1));
         } else if (r.role == 1) {
             receive(r);
         }
     },
     nullptr,
     {{"1", kStrong}, {"0", kForbidden}},
     "9.5.3: the end of a context is a quiet of it."},
    {"team_ctx_fence",
     2,
     {"ctx_p(t, x@1, 1); ctx_fence(t); ctx_set(t, flag@1, 1)", "wait(flag); r0 = g(x@1)"},
     [](const Round& r) { on_contexts(r, r.team_ctx, [&] { shmem_ctx_fence(r.team_ctx); }, r.team_ctx); },
     nullptr,
     {{"1", kStrong}, {"0", kForbidden}},
     "9.5, 9.12.1: a context of a team (t) has order as any other."},
    {"team_ctx_world",
     2,
     {"p(x@1, 1); ctx_fence(t); ctx_set(t, flag@1, 1)", "wait(flag); r0 = g(x@1)"},
     [](const Round& r) { on_contexts(r, SHMEM_CTX_DEFAULT, [&] { shmem_ctx_fence(r.team_ctx); }, r.team_ctx); },
     nullptr,
     {{"1", kStrong}, {"0", kWeak}},
     "9.5, 9.12.1: the put is on the default context, which the fence does not order."},
    {"barrier",
     2,
     {"p(x@1, 1); barrier_all", "barrier_all; r0 = g(x@1)"},
     [](const Round& r) { put_then_collective(r, SHMEM_CTX_DEFAULT, shmem_barrier_all); },
     nullptr,
     {{"1", kStrong}, {"0", kForbidden}},
     "9.10.1: a barrier completes what is on the default context, and synchronizes."},
    {"sync",
     2,
     {"p(x@1, 1); sync_all", "sync_all; r0 = g(x@1)"},
     [](const Round& r) { put_then_collective(r, SHMEM_CTX_DEFAULT, shmem_sync_all); },
     nullptr,
     {{"1", kStrong}, {"0", kWeak}},
     "9.10.4: a sync completes no remote writes."},
    {"sync_quiet",
     2,
     {"p(x@1, 1); quiet; sync_all", "quiet; sync_all; r0 = g(x@1)"},
     [](const Round& r) {
         put_then_collective(r, SHMEM_CTX_DEFAULT, [] {
             shmem_quiet();
             shmem_sync_all();
         });
     },
     nullptr,
     {{"1", kStrong}, {"0", kForbidden}},
     "9.10.1: a quiet and a sync are a barrier."},
    {"sync_fence",
     2,
     {"p(x@1, 1); fence; sync_all", "fence; sync_all; r0 = g(x@1)"},
     [](const Round& r) {
         put_then_collective(r, SHMEM_CTX_DEFAULT, [] {
             shmem_fence();
             shmem_sync_all();
         });
     },
     nullptr,
     {{"1", kStrong}, {"0", kWeak}},
     "9.12.1: a fence completes nothing, and a sync is no operation on the context that it could order."},
    {"sync_store",
     2,
     {"x = 1; sync_all", "sync_all; r0 = g(x@0)"},
     [](const Round& r) {
         if (r.role == 0)
             store(r.x, 1);
         shmem_sync_all();
         if (r.role == 1)
             r.out(0, shmem_long_g(r.x, r.at(0)));
     },
     nullptr,
     {{"1", kStrong}, {"0", kForbidden}},
     "9.10.4: a sync makes earlier stores visible."},
    {"store_quiet",
     2,
     {"x = 1; quiet; set(flag@1, 1)", "wait(flag); r0 = g(x@0)"},
     [](const Round& r) {
         if (r.role == 0) {
             store(r.x, 1);
             shmem_quiet();
             shmem_long_atomic_set(r.flag, 1, r.at(1));
         } else if (r.role == 1) {
             shmem_long_wait_until(r.flag, SHMEM_CMP_EQ, 1);
             r.out(0, shmem_long_g(r.x, r.at(0)));
         }
     },
     nullptr,
     {{"1", kStrong}, {"0", kForbidden}},
     "9.12: a quiet completes the PE's stores, too."},
    {"team_sync",
     2,
     {"p(x@1, 1); team_sync(t)", "team_sync(t); r0 = g(x@1)"},
     [](const Round& r) { put_then_collective(r, SHMEM_CTX_DEFAULT, [&] { shmem_team_sync(r.team); }); },
     nullptr,
     {{"1", kStrong}, {"0", kWeak}},
     "9.10.3, 9.12.4: as sync."},
    {"broadcast",
     2,
     {"p(x@1, 1); broadcast(copy, root, PE 0)", "broadcast(copy, root, PE 0); r0 = g(x@1)"},
     [](const Round& r) {
         put_then_collective(r, SHMEM_CTX_DEFAULT,
                             [&] { shmem_long_broadcast(SHMEM_TEAM_WORLD, r.copy, r.root, 1, r.at(0)); });
     },
     nullptr,
     {{"1", kStrong}, {"0", kWeak}},
     "9.10.7: a broadcast promises its own data. No collective but a barrier completes puts."},
    {"session_stop",
     2,
     {"session_start(c, BATCH); ctx_p(c, x@1, 1); session_stop(c); ctx_set(c, flag@1, 1)", "wait(flag); r0 = g(x@1)"},
     [](const Round& r) {
         if (r.role == 0)
             shmem_ctx_session_start(r.ctx, SHMEM_CTX_SESSION_BATCH, nullptr, 0);
         on_contexts(r, r.ctx, [&] { shmem_ctx_session_stop(r.ctx); }, r.ctx);
     },
     nullptr,
     {{"1", kStrong}, {"0", kWeak}},
     "9.9: the beginning and the end of a session complete and order nothing."},
    {"session_fence",
     2,
     {"session_start(c, BATCH); ctx_p(c, x@1, 1); ctx_fence(c); ctx_set(c, flag@1, 1); session_stop(c)",
      "wait(flag); r0 = g(x@1)"},
     [](const Round& r) {
         if (r.role == 0)
             shmem_ctx_session_start(r.ctx, SHMEM_CTX_SESSION_BATCH, nullptr, 0);
         on_contexts(r, r.ctx, [&] { shmem_ctx_fence(r.ctx); }, r.ctx);
         if (r.role == 0)
             shmem_ctx_session_stop(r.ctx);
     },
     nullptr,
     {{"1", kStrong}, {"0", kForbidden}},
     "9.9: a session changes the meaning of no fence."},
    {"session_quiet",
     2,
     {"session_start(c, BATCH); ctx_p(c, x@1, 1); ctx_quiet(c); session_stop(c); set(flag@1, 1)",
      "wait(flag); r0 = g(x@1)"},
     [](const Round& r) {
         if (r.role == 0)
             shmem_ctx_session_start(r.ctx, SHMEM_CTX_SESSION_BATCH, nullptr, 0);
         on_contexts(
             r, r.ctx,
             [&] {
                 shmem_ctx_quiet(r.ctx);
                 shmem_ctx_session_stop(r.ctx);
             },
             SHMEM_CTX_DEFAULT);
     },
     nullptr,
     {{"1", kStrong}, {"0", kForbidden}},
     "9.9: a session changes the meaning of no quiet."},
    {"threads",
     2,
     {"thread {p(x@1, 1)}; join; set(flag@1, 1)", "wait(flag); r0 = g(x@1)"},
     put_by_a_thread<nothing>,
     nullptr,
     {{"1", kStrong}, {"0", kWeak}},
     "9.2: what a thread does is done by its PE; the threads' own synchronization orders no delivery."},
    {"threads_fence",
     2,
     {"thread {p(x@1, 1)}; join; fence; set(flag@1, 1)", "wait(flag); r0 = g(x@1)"},
     put_by_a_thread<shmem_fence>,
     nullptr,
     {{"1", kStrong}, {"0", kForbidden}},
     "9.12.1: a fence orders what was put on the context before it, and the join says that this put was."},
    {"threads_quiet",
     2,
     {"thread {p(x@1, 1)}; join; quiet; set(flag@1, 1)", "wait(flag); r0 = g(x@1)"},
     put_by_a_thread<shmem_quiet>,
     nullptr,
     {{"1", kStrong}, {"0", kForbidden}},
     "9.12.2: a quiet completes what all threads of the PE have put before it; the join says that this put was."},
    {"lock",
     2,
     {"set_lock; p(x@0, g(x@0) + 1); clear_lock; finally: r0 = x", "set_lock; p(x@0, g(x@0) + 1); clear_lock"},
     [](const Round& r) { increment_under_lock(r, SHMEM_CTX_DEFAULT); },
     final_x_of_role_0,
     {{"2", kStrong}, {"1", kForbidden}},
     "9.13.1: one PE at a time has the lock, and clear_lock is a quiet of the default context."},
    {"lock_ctx",
     2,
     {"set_lock; ctx_p(c, x@0, g(x@0) + 1); clear_lock; finally: r0 = x",
      "set_lock; ctx_p(c, x@0, g(x@0) + 1); clear_lock"},
     [](const Round& r) { increment_under_lock(r, r.ctx); },
     final_x_of_role_0,
     {{"2", kStrong}, {"1", kWeak}},
     "9.13.1: clear_lock completes nothing on other contexts."},
};

}  // namespace

std::span<const Test> scope_tests() {
    return kTests;
}

}  // namespace litmus
