// Atomic operations: order with each other, atomicity, and what several PEs see of them (3.2, 9.7).
#include "litmus.h"

namespace litmus {
namespace {

using enum Kind;

template <bool has_fence>
void set_then_fetch(const Round& r) {
    if (r.role == 0) {
        shmem_long_atomic_set(r.x, 1, r.at(1));
        if constexpr (has_fence)
            shmem_fence();
        r.out(0, shmem_long_atomic_fetch(r.x, r.at(1)));
    }
}

const Test kTests[] = {
    {"set_fetch",
     2,
     {"set(x@1, 1); r0 = fetch(x@1)", ""},
     set_then_fetch<false>,
     nullptr,
     {{"1", kStrong}, {"0", kWeak}},
     "9.7: a set may return before it is executed; nothing orders the fetch behind it."},
    {"set_fence_fetch",
     2,
     {"set(x@1, 1); fence; r0 = fetch(x@1)", ""},
     set_then_fetch<true>,
     nullptr,
     {{"1", kStrong}, {"0", kForbidden}},
     "9.12.1: a fence orders blocking atomics to one PE, those that fetch among them."},
    {"set_add",
     2,
     {"set(x@1, 4); add(x@1, 1)", "finally: r0 = x"},
     [](const Round& r) {
         if (r.role == 0) {
             shmem_long_atomic_set(r.x, 4, r.at(1));
             shmem_long_atomic_add(r.x, 1, r.at(1));
         }
     },
     [](const Round& r) {
         if (r.role == 1)
             r.out(0, load(r.x));
     },
     {{"5", kStrong}, {"4", kWeak}},
     "9.7, 3.2: both are executed whole, in either order: the set may come last."},
    {"increments",
     3,
     {"inc(x@2); inc(x@2)", "inc(x@2); inc(x@2)", "finally: r0 = x"},
     [](const Round& r) {
         if (r.role < 2) {
             shmem_long_atomic_inc(r.x, r.at(2));
             shmem_long_atomic_inc(r.x, r.at(2));
         }
     },
     [](const Round& r) {
         if (r.role == 2)
             r.out(0, load(r.x));
     },
     {{"4", kStrong}},
     "3.2: accesses to one location exclude each other, so no increment is lost. 9.10.1: the barrier completes them."},
    {"tickets",
     3,
     {"r0 = fetch_add(x@0, 1)", "r1 = fetch_add(x@0, 1)", "r2 = fetch_add(x@0, 1)"},
     [](const Round& r) {
         if (r.role < 3)
             r.out(r.role, shmem_long_atomic_fetch_add(r.x, 1, r.at(0)));
     },
     nullptr,
     {{"012", kStrong}, {"021", kStrong}, {"102", kStrong}, {"120", kStrong}, {"201", kStrong}, {"210", kStrong}},
     "3.2, 9.7.1.7: fetch and addition are one step, so no value is drawn twice."},
    {"compare_swap",
     3,
     {"r0 = compare_swap(x@2, 0, 1)", "r1 = compare_swap(x@2, 0, 2)", ""},
     [](const Round& r) {
         if (r.role < 2)
             r.out(r.role, shmem_long_atomic_compare_swap(r.x, 0, r.role + 1, r.at(2)));
     },
     nullptr,
     {{"01", kStrong}, {"20", kStrong}, {"00", kForbidden}},
     "3.2, 9.7.1.3: comparison and swap are one step, so one PE wins and the other sees its value."},
    {"fetch_add_nbi",
     2,
     {"fetch_add_nbi(r0, x@1, 1); fetch_add_nbi(r1, x@1, 1); quiet", ""},
     [](const Round& r) {
         if (r.role == 0) {
             long values[2] = {9, 9};
             shmem_long_atomic_fetch_add_nbi(&values[0], r.x, 1, r.at(1));
             shmem_long_atomic_fetch_add_nbi(&values[1], r.x, 1, r.at(1));
             shmem_quiet();
             r.out(0, values[0]);
             r.out(1, values[1]);
         }
     },
     nullptr,
     {{"01", kStrong}, {"10", kWeak}, {"00", kForbidden}, {"11", kForbidden}},
     "9.7.2: both are complete at the quiet, executed in either order. 3.2: never both on the same value."},
    {"read_read",
     2,
     {"set(x@1, 1)", "r0 = fetch(x@1); r1 = fetch(x@1)"},
     [](const Round& r) {
         if (r.role == 0) {
             shmem_long_atomic_set(r.x, 1, r.at(1));
         } else if (r.role == 1) {
             r.out(0, shmem_long_atomic_fetch(r.x, r.at(1)));
             r.out(1, shmem_long_atomic_fetch(r.x, r.at(1)));
         }
     },
     nullptr,
     {{"00", kStrong}, {"01", kStrong}, {"11", kStrong}, {"10", kForbidden}},
     "3.2, 9.7: atomics on one location come one after the other, and the first fetch is over before the second "
     "begins."},
    {"readers",
     4,
     {"set(x@2, 1)", "set(y@3, 1)", "r0 = fetch(x@2); r1 = fetch(y@3)", "r2 = fetch(y@3); r3 = fetch(x@2)"},
     [](const Round& r) {
         if (r.role == 0) {
             shmem_long_atomic_set(r.x, 1, r.at(2));
         } else if (r.role == 1) {
             shmem_long_atomic_set(r.y, 1, r.at(3));
         } else if (r.role == 2) {
             r.out(0, shmem_long_atomic_fetch(r.x, r.at(2)));
             r.out(1, shmem_long_atomic_fetch(r.y, r.at(3)));
         } else if (r.role == 3) {
             r.out(2, shmem_long_atomic_fetch(r.y, r.at(3)));
             r.out(3, shmem_long_atomic_fetch(r.x, r.at(2)));
         }
     },
     nullptr,
     {{"1010", kSilent}, {"????", kStrong}},
     "3.2 speaks of one location. No sentence says that all PEs see atomics of two PEs on two locations in one order "
     "(independent reads of independent writes, IRIW)."},
};

}  // namespace

std::span<const Test> atomic_tests() {
    return kTests;
}

}  // namespace litmus
