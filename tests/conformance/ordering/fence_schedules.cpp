// Random schedules of fences: HEDDLE_TEST_THREADS threads of each PE put, fence, quiet and report on several contexts,
// HEDDLE_TEST_STEPS times each, and end and begin anew. Every thread has a counter on the next PE for each context,
// which only grows, and tells the other threads how far it is and how far it is fenced, by itself or by another thread.
// Any thread reports on the same context what it has been told. The next PE, which watches the reports, never finds a
// counter behind one.
#include "check.h"

#include <shmemx.h>
#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

using namespace conformance;

namespace {

constexpr size_t kMostThreads = 64, kContexts = 4, kSerialized = 3;
constexpr size_t kLarge = 6000;  // words
constexpr uint64_t kLargeEvery = 16;
constexpr int kCountBits = 48;

struct Counter {
    uint64_t word, atomic, signal;
    uint64_t words[100];
};
// Of one thread of the PE before.
struct Inbox {
    Counter counters[kContexts];
    uint64_t reports[kContexts];  // thread : 16 | its counter : 48
};
Inbox* inboxes;
uint64_t* larges;  // of thread 0 alone, for each context: the last multiple of kLargeEvery
uint64_t ended;    // threads of the PE before that have ended

shmem_ctx_t contexts[kContexts];
std::mutex serialized;  // of the SERIALIZED context
std::atomic<uint64_t> posted[kMostThreads][kContexts], fenced[kMostThreads][kContexts];
size_t n_threads, steps;
int next;

void raise(std::atomic<uint64_t>& to, uint64_t value) {
    uint64_t was = to.load(std::memory_order_relaxed);
    while (was < value && !to.compare_exchange_weak(was, value, std::memory_order_acq_rel)) continue;
}

class Worker {
  public:
    Worker(size_t number, uint64_t life)
        : number_(number), random_(random_for(life, static_cast<uint64_t>(pe), number)) {}

    void run(size_t count) {
        for (size_t i = 0; i < count; ++i) step(random_.below(kContexts));
        for (const shmem_ctx_t ctx : contexts) {
            const std::lock_guard lock(serialized);
            shmem_ctx_quiet(ctx);
        }
    }

  private:
    void step(size_t c) {
        std::unique_lock lock(serialized, std::defer_lock);
        if (c == kSerialized)
            lock.lock();
        switch (random_.below(8)) {
            case 0:
                fence_all(c);
                break;
            case 1:
            case 2:
                report(c);
                break;
            default:
                put(c, posted[number_][c].load(std::memory_order_relaxed) + 1);
        }
    }

    // Counts, and may fence. What was put to these words before is fenced: puts to one place have no order.
    void put(size_t c, uint64_t value) {
        Counter& to = inboxes[number_].counters[c];
        const shmem_ctx_t ctx = contexts[c];
        uint64_t words[100];
        std::fill(std::begin(words), std::end(words), value);
        if (!is_fenced_[c])
            shmem_ctx_fence(ctx);
        if (number_ == 0 && value % kLargeEvery == 0) {
            shmem_ctx_quiet(ctx);
            large_[c].assign(kLarge, value);
            shmem_ctx_uint64_put_nbi(ctx, larges + c * kLarge, large_[c].data(), kLarge, next);
        }
        shmem_ctx_uint64_atomic_set(ctx, &to.atomic, value, next);
        shmem_ctx_uint64_p(ctx, &to.word, value, next);
        shmem_ctx_uint64_put_signal(ctx, to.words, words, 1 + random_.below(100), &to.signal, value, SHMEM_SIGNAL_SET,
                                    next);
        posted[number_][c].store(value, std::memory_order_release);
        is_fenced_[c] = random_.below(2) == 0;
        if (!is_fenced_[c])
            return;
        if (random_.below(8) == 0)
            shmem_ctx_quiet(ctx);
        else
            shmem_ctx_fence(ctx);
        raise(fenced[number_][c], value);
    }

    // Fences for all threads what they have posted.
    void fence_all(size_t c) {
        uint64_t seen[kMostThreads];
        for (size_t i = 0; i < n_threads; ++i) seen[i] = posted[i][c].load(std::memory_order_acquire);
        shmem_ctx_fence(contexts[c]);
        for (size_t i = 0; i < n_threads; ++i) raise(fenced[i][c], seen[i]);
    }

    void report(size_t c) {
        const size_t of = random_.below(n_threads);
        const uint64_t value = fenced[of][c].load(std::memory_order_acquire) | uint64_t{of} << kCountBits;
        uint64_t* const to = &inboxes[number_].reports[c];
        if (random_.below(3) == 0)
            shmem_ctx_uint64_atomic_set(contexts[c], to, value, next);
        else
            shmem_ctx_uint64_p(contexts[c], to, value, next);
    }

    const size_t number_;
    Random random_;
    std::vector<uint64_t> large_[kContexts];
    bool is_fenced_[kContexts] = {};
};

// What a report says has come.
void check(const Inbox& inbox, size_t c) {
    if (!shmem_uint64_test(const_cast<uint64_t*>(&inbox.reports[c]), SHMEM_CMP_NE, 0))
        return;
    const uint64_t report = __atomic_load_n(&inbox.reports[c], __ATOMIC_ACQUIRE);
    const uint64_t count = report & ((uint64_t{1} << kCountBits) - 1), of = report >> kCountBits;
    const volatile Counter& counter = inboxes[of].counters[c];
    CHECK(counter.word >= count);
    CHECK(counter.atomic >= count);
    CHECK(counter.signal >= count);
    CHECK(counter.words[0] >= count);
    const volatile uint64_t* const large = larges + c * kLarge;
    if (of == 0)
        for (size_t i : {size_t{0}, kLarge - 1}) CHECK(large[i] >= count / kLargeEvery * kLargeEvery);
}

void live(size_t number) {
    for (uint64_t life = 0; life < 4; ++life) std::thread([&] { Worker(number, life).run(steps / 4); }).join();
    shmem_uint64_atomic_inc(&ended, next);
}

}  // namespace

int main() {
    start("fence_schedules");
    n_threads = std::min<size_t>(number("HEDDLE_TEST_THREADS", 4), kMostThreads);
    steps = number("HEDDLE_TEST_STEPS", 2000);
    next = (pe + 1) % n_pes;
    inboxes = static_cast<Inbox*>(shmem_calloc(kMostThreads, sizeof *inboxes));
    larges = static_cast<uint64_t*>(shmem_calloc(kContexts * kLarge, sizeof *larges));
    CHECK(inboxes != nullptr && larges != nullptr);
    const long options[kContexts] = {0, 0, SHMEM_CTX_NOSTORE, SHMEM_CTX_SERIALIZED};
    contexts[0] = SHMEM_CTX_DEFAULT;
    for (size_t c = 1; c < kContexts; ++c) CHECK_EQ(shmem_ctx_create(options[c], &contexts[c]), 0);
    shmem_barrier_all();
    std::vector<std::thread> threads;
    for (size_t i = 0; i < n_threads; ++i) threads.emplace_back(live, i);
    subject = "a report";
    while (!shmem_uint64_test(&ended, SHMEM_CMP_GE, n_threads)) {
        for (size_t i = 0; i < n_threads; ++i)
            for (size_t c = 0; c < kContexts; ++c) check(inboxes[i], c);
        shmemx_progress();
    }
    for (std::thread& thread : threads) thread.join();
    for (size_t c = 1; c < kContexts; ++c) shmem_ctx_destroy(contexts[c]);
    shmem_barrier_all();
    shmem_free(larges);
    shmem_free(inboxes);
    return finish();
}
