// Puts, gets, fence and quiet: message passing, store and load buffering, two writers (9.6, 9.12).
#include "litmus.h"

#include <sched.h>

namespace litmus {
namespace {

using enum Kind;

void wait_then_read_x(const Round& r, const long* flag, int role_of_x) {
    shmem_long_wait_until(const_cast<long*>(flag), SHMEM_CMP_EQ, 1);
    r.out(0, shmem_long_g(r.x, r.at(role_of_x)));
}

// Role 0 sends to role 2 by way of role 1.
template <void (*complete)()>
void relayed(const Round& r) {
    if (r.role == 0) {
        shmem_long_p(r.x, 1, r.at(2));
        complete();
        shmem_long_atomic_set(r.flag, 1, r.at(1));
    } else if (r.role == 1) {
        shmem_long_wait_until(r.flag, SHMEM_CMP_EQ, 1);
        shmem_long_atomic_set(r.told, 1, r.at(2));
    } else if (r.role == 2) {
        wait_then_read_x(r, r.told, 2);
    }
}

void nothing() {}

// Role 0 puts x, and then the flag, to role 1; the latter reads x when the flag is there.
template <void (*order)()>
void message_passing(const Round& r) {
    if (r.role == 0) {
        shmem_long_p(r.x, 1, r.at(1));
        order();
        shmem_long_atomic_set(r.flag, 1, r.at(1));
    } else if (r.role == 1) {
        wait_then_read_x(r, r.flag, 1);
    }
}

template <void (*order)()>
void seen_by_a_third(const Round& r) {
    if (r.role == 0) {
        shmem_long_p(r.x, 1, r.at(1));
        order();
        shmem_long_atomic_set(r.flag, 1, r.at(1));
    } else if (r.role == 2) {
        while (shmem_long_atomic_fetch(r.flag, r.at(1)) == 0) sched_yield();
        r.out(0, shmem_long_g(r.x, r.at(1)));
    }
}

template <void (*order)()>
void put_then_get(const Round& r) {
    if (r.role == 0) {
        shmem_long_p(r.x, 1, r.at(1));
        order();
        r.out(0, shmem_long_g(r.x, r.at(1)));
    }
}

template <void (*order)()>
void put_twice(const Round& r) {
    if (r.role == 0) {
        shmem_long_p(r.x, 1, r.at(1));
        order();
        shmem_long_p(r.x, 2, r.at(1));
    }
}

void final_x_of_role_1(const Round& r) {
    if (r.role == 1)
        r.out(0, load(r.x));
}

// Each of two roles writes to the other, and reads its own variable.
template <void (*order)()>
void store_buffering(const Round& r) {
    if (r.role < 2) {
        shmem_long_atomic_set(r.x, 1, r.at(1 - r.role));
        order();
        r.out(r.role, shmem_long_atomic_fetch(r.x, r.self()));
    }
}

// As store_buffering, with both variables on the PE of role 2.
template <void (*order)()>
void store_buffering_on_one(const Round& r) {
    if (r.role < 2) {
        shmem_long_atomic_set(r.role == 0 ? r.x : r.y, 1, r.at(2));
        order();
        r.out(r.role, shmem_long_atomic_fetch(r.role == 0 ? r.y : r.x, r.at(2)));
    }
}

// Two roles write both variables of role 2, in opposite orders.
template <void (*order)()>
void two_writers(const Round& r) {
    if (r.role < 2) {
        shmem_long_atomic_set(r.role == 0 ? r.x : r.y, 1, r.at(2));
        order();
        shmem_long_atomic_set(r.role == 0 ? r.y : r.x, 2, r.at(2));
    }
}

void final_x_and_y_of_role_2(const Round& r) {
    if (r.role == 2) {
        r.out(0, load(r.x));
        r.out(1, load(r.y));
    }
}

const Test kTests[] = {
    {"mp",
     2,
     {"p(x@1, 1); set(flag@1, 1)", "wait(flag); r0 = g(x@1)"},
     message_passing<nothing>,
     nullptr,
     {{"1", kStrong}, {"0", kWeak}},
     "9.6.1.1: without a fence, what is sent second may be delivered first."},
    {"mp_fence",
     2,
     {"p(x@1, 1); fence; set(flag@1, 1)", "wait(flag); r0 = g(x@1)"},
     message_passing<shmem_fence>,
     nullptr,
     {{"1", kStrong}, {"0", kForbidden}},
     "9.12.1: x is delivered before the flag. 9.11: a wait makes later reads of the PE observe that order."},
    {"mp_quiet",
     2,
     {"p(x@1, 1); quiet; set(flag@1, 1)", "wait(flag); r0 = g(x@1)"},
     message_passing<shmem_quiet>,
     nullptr,
     {{"1", kStrong}, {"0", kForbidden}},
     "9.12.2: x is complete before the flag is sent."},
    {"mp_atomics",
     2,
     {"set(x@1, 1); set(flag@1, 1)", "wait(flag); r0 = fetch(x@1)"},
     [](const Round& r) {
         if (r.role == 0) {
             shmem_long_atomic_set(r.x, 1, r.at(1));
             shmem_long_atomic_set(r.flag, 1, r.at(1));
         } else if (r.role == 1) {
             shmem_long_wait_until(r.flag, SHMEM_CMP_EQ, 1);
             r.out(0, shmem_long_atomic_fetch(r.x, r.at(1)));
         }
     },
     nullptr,
     {{"1", kStrong}, {"0", kWeak}},
     "9.7, 3.2: an atomic that fetches nothing may return before it is executed. Atomicity is of one location and "
     "orders "
     "no two locations."},
    {"mp_test",
     2,
     {"p(x@1, 1); fence; set(flag@1, 1)", "r0 = test(flag); r1 = r0 ? g(x@1) : 0"},
     [](const Round& r) {
         if (r.role == 0) {
             shmem_long_p(r.x, 1, r.at(1));
             shmem_fence();
             shmem_long_atomic_set(r.flag, 1, r.at(1));
         } else if (r.role == 1) {
             int is_set = 0;
             for (int i = 0; i < kPolls && !is_set; ++i) is_set = shmem_long_test(r.flag, SHMEM_CMP_EQ, 1);
             r.out(0, is_set);
             r.out(1, is_set ? shmem_long_g(r.x, r.at(1)) : 0);
         }
     },
     nullptr,
     {{"00", kStrong}, {"11", kStrong}, {"10", kForbidden}},
     "9.12.1, 9.11: as mp_fence where the test is true. Where it is false, nothing follows."},
    {"mp_third_fence",
     3,
     {"p(x@1, 1); fence; set(flag@1, 1)", "", "until flag is 1: fetch(flag@1); r0 = g(x@1)"},
     seen_by_a_third<shmem_fence>,
     nullptr,
     {{"1", kStrong}, {"0", kSilent}},
     "9.12.1: a fence orders the delivery to a PE. That a third PE can see what was delivered, only a quiet promises."},
    {"mp_third_quiet",
     3,
     {"p(x@1, 1); quiet; set(flag@1, 1)", "", "until flag is 1: fetch(flag@1); r0 = g(x@1)"},
     seen_by_a_third<shmem_quiet>,
     nullptr,
     {{"1", kStrong}, {"0", kForbidden}},
     "9.12.2: when the flag is sent, all PEs can see x."},
    {"relay_fence",
     3,
     {"p(x@2, 1); fence; set(flag@1, 1)", "wait(flag); set(told@2, 1)", "wait(told); r0 = g(x@2)"},
     relayed<shmem_fence>,
     nullptr,
     {{"1", kStrong}, {"0", kWeak}},
     "9.12.1: a fence orders what one PE sends to one PE. Role 1's message to role 2 is neither."},
    {"relay_quiet",
     3,
     {"p(x@2, 1); quiet; set(flag@1, 1)", "wait(flag); set(told@2, 1)", "wait(told); r0 = g(x@2)"},
     relayed<shmem_quiet>,
     nullptr,
     {{"1", kStrong}, {"0", kForbidden}},
     "9.12.2: x is complete, for every PE, before role 1 is told."},
    {"fence_other_pe",
     3,
     {"p(x@1, 1); fence; set(flag@2, 1)", "", "wait(flag); r0 = g(x@1)"},
     [](const Round& r) {
         if (r.role == 0) {
             shmem_long_p(r.x, 1, r.at(1));
             shmem_fence();
             shmem_long_atomic_set(r.flag, 1, r.at(2));
         } else if (r.role == 2) {
             wait_then_read_x(r, r.flag, 1);
         }
     },
     nullptr,
     {{"1", kStrong}, {"0", kWeak}},
     "9.12.1: a fence orders nothing between different targets."},
    {"pe_quiet",
     4,
     {"p(x@1, 1); p(x@2, 1); pe_quiet({1}); set(flag@3, 1)", "", "", "wait(flag); r0 = g(x@1); r1 = g(x@2)"},
     [](const Round& r) {
         if (r.role == 0) {
             const int target = r.at(1);
             shmem_long_p(r.x, 1, r.at(1));
             shmem_long_p(r.x, 1, r.at(2));
             shmem_pe_quiet(&target, 1);
             shmem_long_atomic_set(r.flag, 1, r.at(3));
         } else if (r.role == 3) {
             wait_then_read_x(r, r.flag, 1);
             r.out(1, shmem_long_g(r.x, r.at(2)));
         }
     },
     nullptr,
     {{"11", kStrong}, {"10", kWeak}, {"0?", kForbidden}},
     "9.12.3: complete is what was sent to the PEs of the list; nothing is said of others."},
    {"words",
     2,
     {"put(words@1, {1, 1}, 2); set(flag@1, 1)", "wait(flag); r0 = g(words[0]@1); r1 = g(words[1]@1)"},
     [](const Round& r) {
         static const long ones[2] = {1, 1};
         if (r.role == 0) {
             shmem_long_put(r.words, ones, 2, r.at(1));
             shmem_long_atomic_set(r.flag, 1, r.at(1));
         } else if (r.role == 1) {
             shmem_long_wait_until(r.flag, SHMEM_CMP_EQ, 1);
             r.out(0, shmem_long_g(&r.words[0], r.at(1)));
             r.out(1, shmem_long_g(&r.words[1], r.at(1)));
         }
     },
     nullptr,
     {{"11", kStrong}, {"00", kWeak}, {"01", kWeak}, {"10", kWeak}},
     "9.6.1.1: the words of one put are delivered in any order, some ahead of the flag and some behind it."},
    {"put_put",
     2,
     {"p(x@1, 1); p(x@1, 2)", "finally: r0 = x"},
     put_twice<nothing>,
     final_x_of_role_1,
     {{"2", kStrong}, {"1", kWeak}},
     "9.6.1.1: two puts may be delivered in either order, also to one place."},
    {"put_put_fence",
     2,
     {"p(x@1, 1); fence; p(x@1, 2)", "finally: r0 = x"},
     put_twice<shmem_fence>,
     final_x_of_role_1,
     {{"2", kStrong}, {"1", kForbidden}},
     "9.12.1: the second put is delivered second."},
    {"put_get",
     2,
     {"p(x@1, 1); r0 = g(x@1)", ""},
     put_then_get<nothing>,
     nullptr,
     {{"1", kStrong}, {"0", kWeak}},
     "9.6.1, 9.12.4: a put may be delivered after its return, and nothing orders a get behind it."},
    {"put_get_fence",
     2,
     {"p(x@1, 1); fence; r0 = g(x@1)", ""},
     put_then_get<shmem_fence>,
     nullptr,
     {{"1", kStrong}, {"0", kWeak}},
     "9.12: a fence orders no gets: the table of ordered operations leaves them out."},
    {"put_get_quiet",
     2,
     {"p(x@1, 1); quiet; r0 = g(x@1)", ""},
     put_then_get<shmem_quiet>,
     nullptr,
     {{"1", kStrong}, {"0", kForbidden}},
     "9.12.2: the put is complete and visible to all PEs, also to the caller."},
    {"put_self",
     1,
     {"p(x@0, 1); r0 = x"},
     [](const Round& r) {
         if (r.role == 0) {
             shmem_long_p(r.x, 1, r.self());
             r.out(0, load(r.x));
         }
     },
     nullptr,
     {{"1", kStrong}, {"0", kWeak}},
     "9.6.1.1: the text has no exception for a put to the calling PE."},
    {"put_self_quiet",
     1,
     {"p(x@0, 1); quiet; r0 = x"},
     [](const Round& r) {
         if (r.role == 0) {
             shmem_long_p(r.x, 1, r.self());
             shmem_quiet();
             r.out(0, load(r.x));
         }
     },
     nullptr,
     {{"1", kStrong}, {"0", kForbidden}},
     "9.12.2: the put is complete."},
    {"sb",
     2,
     {"set(x@1, 1); r0 = fetch(x@0)", "set(x@0, 1); r1 = fetch(x@1)"},
     store_buffering<nothing>,
     nullptr,
     {{"01", kStrong}, {"10", kStrong}, {"11", kStrong}, {"00", kWeak}},
     "9.7: each PE may read while its own write is still under way."},
    {"sb_quiet",
     2,
     {"set(x@1, 1); quiet; r0 = fetch(x@0)", "set(x@0, 1); quiet; r1 = fetch(x@1)"},
     store_buffering<shmem_quiet>,
     nullptr,
     {{"01", kStrong}, {"10", kStrong}, {"11", kStrong}, {"00", kForbidden}},
     "9.12.2: each write is visible to all before its PE reads. Of the two quiets one returns first."},
    {"sb_fence_apart",
     2,
     {"set(x@1, 1); fence; r0 = fetch(x@0)", "set(x@0, 1); fence; r1 = fetch(x@1)"},
     store_buffering<shmem_fence>,
     nullptr,
     {{"01", kStrong}, {"10", kStrong}, {"11", kStrong}, {"00", kWeak}},
     "9.12.1: write and fetch have different targets; a fence does not order them."},
    {"sb_fence",
     3,
     {"set(x@2, 1); fence; r0 = fetch(y@2)", "set(y@2, 1); fence; r1 = fetch(x@2)", ""},
     store_buffering_on_one<shmem_fence>,
     nullptr,
     {{"01", kStrong}, {"10", kStrong}, {"11", kStrong}, {"00", kForbidden}},
     "9.12.1: a fetch is an atomic operation, which a fence orders, too: each write is delivered before the fetch "
     "behind "
     "it."},
    {"lb",
     3,
     {"r0 = fetch(x@2); set(y@2, 1)", "r1 = fetch(y@2); set(x@2, 1)", ""},
     [](const Round& r) {
         if (r.role < 2) {
             r.out(r.role, shmem_long_atomic_fetch(r.role == 0 ? r.x : r.y, r.at(2)));
             shmem_long_atomic_set(r.role == 0 ? r.y : r.x, 1, r.at(2));
         }
     },
     nullptr,
     {{"00", kStrong}, {"01", kStrong}, {"10", kStrong}, {"11", kForbidden}},
     "9.7: a fetch returns when it has its value, so each write begins behind the read. No value comes from the "
     "future."},
    {"lb_nbi",
     3,
     {"fetch_nbi(r0, x@2); set(y@2, 1); quiet", "fetch_nbi(r1, y@2); set(x@2, 1); quiet", ""},
     [](const Round& r) {
         if (r.role < 2) {
             long value = 9;
             shmem_long_atomic_fetch_nbi(&value, r.role == 0 ? r.x : r.y, r.at(2));
             shmem_long_atomic_set(r.role == 0 ? r.y : r.x, 1, r.at(2));
             shmem_quiet();
             r.out(r.role, value);
         }
     },
     nullptr,
     {{"00", kStrong}, {"01", kStrong}, {"10", kStrong}, {"11", kWeak}},
     "9.7.2: a non-blocking fetch is carried out at any time up to the quiet, behind the write, too."},
    {"two_writers",
     3,
     {"set(x@2, 1); set(y@2, 2)", "set(y@2, 1); set(x@2, 2)", "finally: r0 = x; r1 = y"},
     two_writers<nothing>,
     final_x_and_y_of_role_2,
     {{"12", kStrong}, {"21", kStrong}, {"22", kStrong}, {"11", kWeak}},
     "9.7, 9.12: nothing orders the two writes of a PE, so each first one may come last."},
    {"two_writers_fence",
     3,
     {"set(x@2, 1); fence; set(y@2, 2)", "set(y@2, 1); fence; set(x@2, 2)", "finally: r0 = x; r1 = y"},
     two_writers<shmem_fence>,
     final_x_and_y_of_role_2,
     {{"12", kStrong}, {"21", kStrong}, {"22", kStrong}, {"11", kForbidden}},
     "9.12.1: both of a PE's writes are delivered in their order, to one PE. If both first ones came last, each would "
     "be "
     "behind the other."},
};

}  // namespace

std::span<const Test> order_tests() {
    return kTests;
}

}  // namespace litmus
