// Signals and non-blocking operations (9.6.2, 9.7.2, 9.8), and waits for one of several (9.11).
#include "litmus.h"

namespace litmus {
namespace {

using enum Kind;

const long kOne = 1;  // a source that never changes

template <void (*order)()>
void put_then_signal(const Round& r) {
    if (r.role == 0) {
        shmem_long_p(r.x, 1, r.at(1));
        order();
        shmem_long_put_signal(r.y, &kOne, 1, r.signal, 1, SHMEM_SIGNAL_SET, r.at(1));
    } else if (r.role == 1) {
        shmem_signal_wait_until(r.signal, SHMEM_CMP_EQ, 1);
        r.out(0, shmem_long_g(r.x, r.at(1)));
        r.out(1, shmem_long_g(r.y, r.at(1)));
    }
}

template <void (*order)()>
void put_nbi_then_flag(const Round& r) {
    if (r.role == 0) {
        shmem_long_put_nbi(r.x, &kOne, 1, r.at(1));
        order();
        shmem_long_atomic_set(r.flag, 1, r.at(1));
    } else if (r.role == 1) {
        shmem_long_wait_until(r.flag, SHMEM_CMP_EQ, 1);
        r.out(0, shmem_long_g(r.x, r.at(1)));
    }
}

void nothing() {}

// Role 0 sends x and y, each with a signal on one object. Registers of role 1: the signal; the data that this signal
// speaks of; and behind a second signal x. Nothing is read that a call of role 0 may still be putting.
template <int operation, uint64_t second, void (*order)()>
void two_signals(const Round& r) {
    if (r.role == 0) {
        shmem_long_put_signal(r.x, &kOne, 1, r.signal, 1, operation, r.at(1));
        order();
        shmem_long_put_signal(r.y, &kOne, 1, r.signal, second, operation, r.at(1));
    } else if (r.role == 1) {
        const uint64_t seen = shmem_signal_wait_until(r.signal, SHMEM_CMP_GE, 1);
        r.out(0, static_cast<long>(seen));
        r.out(1, shmem_long_g(seen == 1 ? r.x : r.y, r.at(1)));
        r.out(2, seen == 1 ? 0 : shmem_long_g(r.x, r.at(1)));
    }
}

const Test kTests[] = {
    {"nbi",
     2,
     {"put_nbi(x@1, 1); set(flag@1, 1)", "wait(flag); r0 = g(x@1)"},
     put_nbi_then_flag<nothing>,
     nullptr,
     {{"1", kStrong}, {"0", kWeak}, {"*", kSilent}},
     "9.6.2.1: a non-blocking put is delivered at any time up to the quiet. 4.2: until then its dest is in use, and "
     "what "
     "a read of it finds is not defined."},
    {"nbi_fence",
     2,
     {"put_nbi(x@1, 1); fence; set(flag@1, 1)", "wait(flag); r0 = g(x@1)"},
     put_nbi_then_flag<shmem_fence>,
     nullptr,
     {{"1", kStrong}, {"0", kForbidden}},
     "9.12.1: a fence orders non-blocking puts as it does others."},
    {"nbi_quiet",
     2,
     {"put_nbi(x@1, 1); quiet; set(flag@1, 1)", "wait(flag); r0 = g(x@1)"},
     put_nbi_then_flag<shmem_quiet>,
     nullptr,
     {{"1", kStrong}, {"0", kForbidden}},
     "9.6.2.1, 9.12.2: the put is complete before the flag is sent."},
    {"fetch_nbi_late",
     2,
     {"fetch_nbi(r0, x@1); set(flag@1, 1); wait(told); quiet", "wait(flag); set(x@1, 1); quiet; set(told@0, 1)"},
     [](const Round& r) {
         if (r.role == 0) {
             long value = 9;
             shmem_long_atomic_fetch_nbi(&value, r.x, r.at(1));
             shmem_long_atomic_set(r.flag, 1, r.at(1));
             shmem_long_wait_until(r.told, SHMEM_CMP_EQ, 1);
             shmem_quiet();
             r.out(0, value);
         } else if (r.role == 1) {
             shmem_long_wait_until(r.flag, SHMEM_CMP_EQ, 1);
             shmem_long_atomic_set(r.x, 1, r.at(1));
             shmem_quiet();
             shmem_long_atomic_set(r.told, 1, r.at(0));
         }
     },
     nullptr,
     {{"0", kStrong}, {"1", kWeak}},
     "9.7.2.1: the value is fetched at any time up to the quiet, so it may be newer than what the PE did behind the "
     "call."},
    {"signal",
     2,
     {"put_signal(y@1, 1, signal@1)", "signal_wait(signal); r0 = g(y@1)"},
     [](const Round& r) {
         if (r.role == 0) {
             shmem_long_put_signal(r.y, &kOne, 1, r.signal, 1, SHMEM_SIGNAL_SET, r.at(1));
         } else if (r.role == 1) {
             shmem_signal_wait_until(r.signal, SHMEM_CMP_EQ, 1);
             r.out(0, shmem_long_g(r.y, r.at(1)));
         }
     },
     nullptr,
     {{"1", kStrong}, {"0", kForbidden}},
     "9.8.3: the signal says that its data is there."},
    {"signal_nbi",
     2,
     {"put_signal_nbi(words@1, {1, 1}, 2, signal@1)", "signal_wait(signal); r0 = g(words[0]@1); r1 = g(words[1]@1)"},
     [](const Round& r) {
         static const long ones[2] = {1, 1};
         if (r.role == 0) {
             shmem_long_put_signal_nbi(r.words, ones, 2, r.signal, 1, SHMEM_SIGNAL_SET, r.at(1));
         } else if (r.role == 1) {
             shmem_signal_wait_until(r.signal, SHMEM_CMP_EQ, 1);
             r.out(0, shmem_long_g(&r.words[0], r.at(1)));
             r.out(1, shmem_long_g(&r.words[1], r.at(1)));
         }
     },
     nullptr,
     {{"11", kStrong}},
     "9.8.4: the signal says that all words of its data are there."},
    {"signal_other",
     2,
     {"p(x@1, 1); put_signal(y@1, 1, signal@1)", "signal_wait(signal); r0 = g(x@1); r1 = g(y@1)"},
     put_then_signal<nothing>,
     nullptr,
     {{"11", kStrong}, {"01", kWeak}, {"?0", kForbidden}},
     "9.8.3: the signal speaks of its own data and of no other put."},
    {"signal_fence",
     2,
     {"p(x@1, 1); fence; put_signal(y@1, 1, signal@1)", "signal_wait(signal); r0 = g(x@1); r1 = g(y@1)"},
     put_then_signal<shmem_fence>,
     nullptr,
     {{"11", kStrong}, {"01", kForbidden}, {"?0", kForbidden}},
     "9.12.1: x is delivered before the data and the signal."},
    {"signal_twice",
     2,
     {"put_signal(x@1, 1, signal@1, SET 1); put_signal(y@1, 1, signal@1, SET 2)",
      "r0 = signal_wait(signal >= 1); r0 is 1: r1 = g(x@1); r0 is 2: r1 = g(y@1), r2 = g(x@1)"},
     two_signals<SHMEM_SIGNAL_SET, 2, nothing>,
     nullptr,
     {{"110", kStrong}, {"211", kStrong}, {"210", kWeak}, {"100", kForbidden}, {"20?", kForbidden}},
     "9.8.3: each signal speaks of its own data. Nothing orders the two, so the second may come without the first."},
    {"signal_twice_fence",
     2,
     {"put_signal(x@1, 1, signal@1, SET 1); fence; put_signal(y@1, 1, signal@1, SET 2)",
      "r0 = signal_wait(signal >= 1); r0 is 1: r1 = g(x@1); r0 is 2: r1 = g(y@1), r2 = g(x@1)"},
     two_signals<SHMEM_SIGNAL_SET, 2, shmem_fence>,
     nullptr,
     {{"110", kStrong}, {"211", kStrong}, {"210", kForbidden}, {"100", kForbidden}, {"20?", kForbidden}},
     "9.12.1: the first data and signal are delivered before the second."},
    {"signal_sum",
     2,
     {"put_signal(x@1, 1, signal@1, ADD 1); put_signal(y@1, 1, signal@1, ADD 1)",
      "r0 = signal_wait(signal >= 1); r0 is 1: r1 = g(x@1); r0 is 2: r1 = g(y@1), r2 = g(x@1)"},
     two_signals<SHMEM_SIGNAL_ADD, 1, nothing>,
     nullptr,
     {{"110", kStrong}, {"211", kStrong}, {"100", kWeak}, {"210", kForbidden}, {"20?", kForbidden}},
     "9.8.3: the two may be delivered in either order. A sum of 2 says that both are there, a sum of 1 not which one."},
    {"signal_add",
     2,
     {"p(x@1, 1); signal_add(signal@1, 1)", "signal_wait(signal); r0 = g(x@1)"},
     [](const Round& r) {
         if (r.role == 0) {
             shmem_long_p(r.x, 1, r.at(1));
             shmem_signal_add(r.signal, 1, r.at(1));
         } else if (r.role == 1) {
             shmem_signal_wait_until(r.signal, SHMEM_CMP_EQ, 1);
             r.out(0, shmem_long_g(r.x, r.at(1)));
         }
     },
     nullptr,
     {{"1", kStrong}, {"0", kWeak}},
     "9.8.5: a signal without data speaks of no data."},
    {"wait_any",
     3,
     {"p(x@2, 1); fence; set(words[0]@2, 1)", "p(y@2, 1); fence; set(words[1]@2, 1)",
      "r0 = wait_until_any(words); r1 = r0 == 0 ? g(x@2) : g(y@2)"},
     [](const Round& r) {
         if (r.role < 2) {
             shmem_long_p(r.role == 0 ? r.x : r.y, 1, r.at(2));
             shmem_fence();
             shmem_long_atomic_set(&r.words[r.role], 1, r.at(2));
         } else if (r.role == 2) {
             const size_t which = shmem_long_wait_until_any(r.words, 2, nullptr, SHMEM_CMP_EQ, 1);
             r.out(0, static_cast<long>(which));
             r.out(1, shmem_long_g(which == 0 ? r.x : r.y, r.at(2)));
         }
     },
     nullptr,
     {{"01", kStrong}, {"11", kStrong}, {"?0", kForbidden}},
     "9.12.1, 9.11: as mp_fence, for the flag that the wait names."},
};

}  // namespace

std::span<const Test> signal_tests() {
    return kTests;
}

}  // namespace litmus
