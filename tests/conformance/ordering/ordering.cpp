// Litmus tests of fence, quiet, pe_quiet, barrier and signals. Message passing: data put before a fence is there when
// the flag put behind it is. Store buffering: after `store; quiet; load`, done crosswise by two PEs, one sees the
// other's store; so too after `store; fence; atomic fetch`. A control without order shows how often the machine itself
// would break the rule, that is, whether the rounds really meet.
#include "check.h"
#include "tables.h"

#include <sched.h>
#include <algorithm>
#include <cstdio>
#include <ctime>

using namespace conformance;

namespace {

constexpr size_t kWords = 40;            // of a message: several cache lines
constexpr uint64_t kPairRounds = 20000;  // at most
constexpr uint64_t kRoundNs = 1500;

struct alignas(64) Line {
    uint64_t word;
};

// One buffer per PE, in static data and in the heap.
struct Mail {
    uint64_t data[kWords];
    Line flag, taken, relay;
};
Mail static_mail;
Mail* heap_mail;

enum Way { kPutFenceP, kNbiFenceSet, kPutQuietP, kPutCtxFencePut, kPsFenceAdd, kSignal, kWays };
const char* const kWayNames[] = {"put; fence; p",       "put_nbi; fence; atomic_set", "put; quiet; p",
                                 "put; ctx_fence; put", "p ...; fence; atomic_add",   "put_signal"};

void send(Way way, Mail* mail, const uint64_t* data, uint64_t round, int to) {
    switch (way) {
        case kPutFenceP:
            shmem_uint64_put(mail->data, data, kWords, to);
            shmem_fence();
            return shmem_uint64_p(&mail->flag.word, round, to);
        case kNbiFenceSet:
            shmem_put64_nbi(mail->data, data, kWords, to);
            shmem_fence();
            return shmem_uint64_atomic_set(&mail->flag.word, round, to);
        case kPutQuietP:
            shmem_putmem(mail->data, data, sizeof mail->data, to);
            shmem_quiet();
            return shmem_uint64_p(&mail->flag.word, round, to);
        case kPutCtxFencePut:
            shmem_ctx_uint64_put(conformance_ctx, mail->data, data, kWords, to);
            shmem_ctx_fence(conformance_ctx);
            return shmem_ctx_uint64_put(conformance_ctx, &mail->flag.word, &round, 1, to);
        case kPsFenceAdd:
            for (size_t i = kWords; i > 0; --i) shmem_uint64_p(&mail->data[i - 1], data[i - 1], to);
            shmem_fence();
            return shmem_uint64_atomic_add(&mail->flag.word, 1, to);
        default:
            shmem_uint64_put_signal(mail->data, data, kWords, &mail->flag.word, round, SHMEM_SIGNAL_SET, to);
    }
}

void check_mail(const Mail* mail, uint64_t round) {
    for (size_t i = 0; i < kWords; ++i) CHECK_EQ(mail->data[i], round * 1000 + i);
}

// A ring of messages; the receiver waits in three different ways and answers when it has looked at the data.
void message_passing(Way way, Mail* mail, uint64_t rounds) {
    subject = kWayNames[way];
    const int next = (pe + 1) % n_pes, previous = (pe + n_pes - 1) % n_pes;
    mail->flag.word = mail->taken.word = 0;
    shmem_barrier_all();
    for (uint64_t round = 1; round <= rounds; ++round) {
        uint64_t data[kWords];
        for (size_t i = 0; i < kWords; ++i) data[i] = round * 1000 + i;
        send(way, mail, data, round, next);
        if (round % 3 == 0)
            while (!shmem_uint64_test(&mail->flag.word, SHMEM_CMP_GE, round)) sched_yield();
        else if (round % 3 == 1)
            shmem_uint64_wait_until(&mail->flag.word, SHMEM_CMP_EQ, round);
        else
            shmem_signal_wait_until(&mail->flag.word, SHMEM_CMP_GE, round);
        check_mail(mail, round);
        shmem_uint64_p(&mail->taken.word, round, previous);
        shmem_uint64_wait_until(&mail->taken.word, SHMEM_CMP_GE, round);
    }
    shmem_barrier_all();
}

// Causality over three: PE 0 puts to the last, tells the one between, which tells the last.
void relayed(Mail* mail, uint64_t rounds) {
    subject = "put to one, quiet, told by another";
    const int last = n_pes - 1, between = n_pes / 2;
    mail->flag.word = mail->taken.word = mail->relay.word = 0;
    shmem_barrier_all();
    for (uint64_t round = 1; round <= rounds; ++round) {
        if (pe == 0) {
            uint64_t data[kWords];
            for (size_t i = 0; i < kWords; ++i) data[i] = round * 1000 + i;
            shmem_uint64_put(mail->data, data, kWords, last);
            shmem_quiet();
            shmem_uint64_p(&mail->relay.word, round, between);
        }
        if (pe == between) {
            shmem_uint64_wait_until(&mail->relay.word, SHMEM_CMP_GE, round);
            shmem_uint64_p(&mail->flag.word, round, last);
        }
        if (pe == last) {
            shmem_uint64_wait_until(&mail->flag.word, SHMEM_CMP_GE, round);
            check_mail(mail, round);
            shmem_uint64_p(&mail->taken.word, round, 0);
        }
        if (pe == 0)
            shmem_uint64_wait_until(&mail->taken.word, SHMEM_CMP_GE, round);
    }
    shmem_barrier_all();
}

// ---- Store buffering: PE 0 and the last PE; variables of the former and of the latter.
struct Cross {
    Line x[2];  // x[i] is written by side i and lives on that side's partner
    uint64_t begin_ns;
    uint64_t seen[kPairRounds];
};
Cross* cross;

enum Order {
    kNone,
    kQuietGet,
    kPutQuietGet,
    kPeQuiet,
    kCtxQuiet,
    kFenceFetch,
    kSetFenceFetch,
    kFenceFetchNbi,
    kFenceFetchAdd,
    kOrders
};
const char* const kOrderNames[] = {"p; g (control)",
                                   "p; quiet; g",
                                   "put; quiet; get",
                                   "p; pe_quiet; g",
                                   "p; ctx_quiet; g",
                                   "p; fence; atomic_fetch",
                                   "atomic_set; fence; atomic_fetch",
                                   "p; fence; atomic_fetch_nbi",
                                   "p; fence; atomic_fetch_add"};

uint64_t store_then_load(Order order, uint64_t* mine, uint64_t* theirs, int partner, uint64_t round) {
    uint64_t seen = 0;
    if (order == kPutQuietGet)
        shmem_put64(mine, &round, 1, partner);  // of bytes some could come before others
    else if (order == kSetFenceFetch)
        shmem_uint64_atomic_set(mine, round, partner);
    else if (order == kCtxQuiet)
        shmem_ctx_uint64_p(conformance_ctx, mine, round, partner);
    else
        shmem_uint64_p(mine, round, partner);
    switch (order) {
        case kQuietGet:
            shmem_quiet();
            return shmem_uint64_g(theirs, pe);
        case kPutQuietGet:
            shmem_quiet();
            shmem_get64(&seen, theirs, 1, pe);
            return seen;
        case kPeQuiet:
            shmem_pe_quiet(&partner, 1);
            return shmem_uint64_g(theirs, pe);
        case kCtxQuiet:
            shmem_ctx_quiet(conformance_ctx);
            return shmem_uint64_g(theirs, pe);
        case kFenceFetch:
        case kSetFenceFetch:
            shmem_fence();
            return shmem_uint64_atomic_fetch(theirs, pe);
        case kFenceFetchNbi:
            shmem_fence();
            shmem_uint64_atomic_fetch_nbi(&seen, theirs, pe);
            shmem_quiet();
            return seen;
        case kFenceFetchAdd:
            shmem_fence();
            return shmem_uint64_atomic_fetch_add(theirs, 0, pe);
        default:
            return shmem_uint64_g(theirs, pe);
    }
}

uint64_t now_ns() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<uint64_t>(time.tv_sec) * 1000000000u + static_cast<uint64_t>(time.tv_nsec);
}

// Both sides begin a round at the same time by the clock, with the variable to be read in their caches.
void meet(const uint64_t* theirs, uint64_t begin_ns, uint64_t round) {
    while (now_ns() < begin_ns + round * kRoundNs) __atomic_load_n(theirs, __ATOMIC_RELAXED);
}

// The i-th of the cores that this PE may use, for as long as it lives; nothing when there is one only.
class OnCore {
  public:
    explicit OnCore(int i) {
        sched_getaffinity(0, sizeof before_, &before_);
        for (int core = 0; core < CPU_SETSIZE && i >= 0; ++core) {
            if (!CPU_ISSET(core, &before_) || i-- > 0)
                continue;
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(core, &one);
            sched_setaffinity(0, sizeof one, &one);
        }
    }
    ~OnCore() { sched_setaffinity(0, sizeof before_, &before_); }
    OnCore(const OnCore&) = delete;
    OnCore& operator=(const OnCore&) = delete;

  private:
    cpu_set_t before_;
};

// Side i stores to x[i] of its partner, then loads x[1-i] of its own: the forbidden outcome is that both see the old
// one.
void store_buffering(Order order, uint64_t rounds) {
    subject = kOrderNames[order];
    const int side = pe == 0 ? 0 : 1, partner = pe == 0 ? n_pes - 1 : 0;
    // A fence orders what goes to one PE; that it does more holds on one node alone, and is not of the standard.
    const bool fences =
        order == kFenceFetch || order == kSetFenceFetch || order == kFenceFetchNbi || order == kFenceFetchAdd;
    if (fences && (chaos_run() || !shmem_ptr(cross, partner)))
        order = kNone;
    const bool takes_part = n_pes > 1 && (pe == 0 || pe == n_pes - 1);
    cross->x[0].word = cross->x[1].word = 0;
    cross->begin_ns = now_ns() + 200000;
    shmem_barrier_all();
    const uint64_t begin_ns = shmem_uint64_g(&cross->begin_ns, 0);
    if (takes_part) {
        const OnCore core(side);
        for (uint64_t round = 1; round <= rounds; ++round) {
            meet(&cross->x[1 - side].word, begin_ns, round);
            cross->seen[round - 1] =
                store_then_load(order, &cross->x[side].word, &cross->x[1 - side].word, partner, round);
        }
    }
    shmem_barrier_all();
    if (pe == 0 && n_pes > 1) {
        static uint64_t theirs[kPairRounds];
        shmem_get64(theirs, cross->seen, kPairRounds, partner);
        long both_old = 0;
        for (uint64_t i = 0; i < rounds; ++i) both_old += cross->seen[i] <= i && theirs[i] <= i;
        if (order == kNone)
            printf("%s: both saw the old value in %ld of %d rounds\n", subject, both_old, static_cast<int>(rounds));
        else
            CHECK_EQ(both_old, 0);
    }
    shmem_barrier_all();
}

}  // namespace

int main() {
    start("ordering");
    heap_mail = static_cast<Mail*>(shmem_align(64, sizeof *heap_mail));
    cross = static_cast<Cross*>(shmem_align(64, sizeof *cross));
    CHECK(heap_mail && cross);
    const uint64_t rounds = number("HEDDLE_TEST_ROUNDS", n_pes <= 2 ? 500 : 200);
    for (int way = 0; way < kWays; ++way)
        for (Mail* mail : {heap_mail, &static_mail}) message_passing(static_cast<Way>(way), mail, rounds);
    relayed(heap_mail, rounds);
    for (int order = 0; order < kOrders; ++order)
        store_buffering(static_cast<Order>(order), std::min(100 * rounds, kPairRounds));
    return finish();
}
