// A fence by one thread orders what another thread of the PE sends behind it: a writer puts and fences, and hands over
// to a teller, which sends a flag on the same context. Whoever sees the flag has the data. Every way to put, to hand
// over and to tell, on each kind of context; the teller may be a thread that the writer makes behind its fence. A ring:
// each PE sends to the next, and its first thread checks what the one before has sent.
#include "check.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <condition_variable>
#include <functional>
#include <iterator>
#include <mutex>
#include <thread>
#include <vector>

using namespace conformance;

namespace {

constexpr size_t kWords = 12500;         // 100 KB: large data
constexpr size_t kMany = 9000;           // single words, in several messages
constexpr size_t kAhead = kWords - 125;  // from there on words that are sent first, so that the network is busy
constexpr int kWorkers = 3;

struct Target {
    uint64_t words[kWords];
    uint64_t sum, arrived, beside;
    uint64_t aside[kMany];  // what a third thread sends at the same time
    uint64_t flag;          // the rounds of which the flag has come
    uint64_t acknowledged;  // those that the next PE has checked
};
Target* target;
uint64_t round_number, right_sum;
int next, previous;
shmem_ctx_t serialized;
std::vector<uint64_t> values;  // as many as words, all of them the round's number

// --- What the writer sends, and what there is of it when the flag has come.

struct Form {
    const char* name;
    void (*send)(shmem_ctx_t ctx);
    void (*check)();
};

void check_words(size_t first, size_t count, size_t stride = 1) {
    for (size_t i = 0; i < count; ++i) CHECK_EQ(target->words[first + i * stride], round_number);
}

const Form kForms[] = {
    {"p", [](shmem_ctx_t ctx) { shmem_ctx_uint64_p(ctx, target->words, round_number, next); },
     [] { check_words(0, 1); }},
    {"put of 100 words", [](shmem_ctx_t ctx) { shmem_ctx_uint64_put(ctx, target->words, values.data(), 100, next); },
     [] { check_words(0, 100); }},
    {"put of 3000 words", [](shmem_ctx_t ctx) { shmem_ctx_uint64_put(ctx, target->words, values.data(), 3000, next); },
     [] { check_words(0, 3000); }},
    {"many p",
     [](shmem_ctx_t ctx) {
         for (size_t i = 0; i < kMany; ++i) shmem_ctx_uint64_p(ctx, &target->words[i], round_number, next);
     },
     [] { check_words(0, kMany); }},
    {"put_nbi of large data",
     [](shmem_ctx_t ctx) { shmem_ctx_uint64_put_nbi(ctx, target->words, values.data(), kAhead, next); },
     [] { check_words(0, kAhead); }},
    {"put_nbi of large data, p",
     [](shmem_ctx_t ctx) {
         shmem_ctx_uint64_put_nbi(ctx, target->words, values.data(), kAhead - 1, next);
         shmem_ctx_uint64_p(ctx, &target->words[kAhead - 1], round_number, next);
     },
     [] { check_words(0, kAhead); }},
    {"iput", [](shmem_ctx_t ctx) { shmem_ctx_uint64_iput(ctx, target->words, values.data(), 3, 1, 50, next); },
     [] { check_words(0, 50, 3); }},
    {"atomic_set, atomic_add",
     [](shmem_ctx_t ctx) {
         shmem_ctx_uint64_atomic_set(ctx, target->words, round_number, next);
         shmem_ctx_uint64_atomic_add(ctx, &target->sum, round_number, next);
     },
     [] {
         check_words(0, 1);
         right_sum += round_number;
         CHECK_EQ(target->sum, right_sum);
     }},
    {"put_signal",
     [](shmem_ctx_t ctx) {
         shmem_ctx_uint64_put_signal(ctx, target->words, values.data(), 500, &target->arrived, round_number,
                                     SHMEM_SIGNAL_SET, next);
     },
     [] {
         check_words(0, 500);
         CHECK_EQ(target->arrived, round_number);
     }},
};

// --- How the teller sends the flag. Every way makes the round's number of it.

struct Telling {
    const char* name;
    void (*tell)(shmem_ctx_t ctx);
};

const Telling kTellings[] = {
    {"p", [](shmem_ctx_t ctx) { shmem_ctx_uint64_p(ctx, &target->flag, round_number, next); }},
    {"put_nbi", [](shmem_ctx_t ctx) { shmem_ctx_uint64_put_nbi(ctx, &target->flag, values.data(), 1, next); }},
    {"atomic_set", [](shmem_ctx_t ctx) { shmem_ctx_uint64_atomic_set(ctx, &target->flag, round_number, next); }},
    {"atomic_inc", [](shmem_ctx_t ctx) { shmem_ctx_uint64_atomic_inc(ctx, &target->flag, next); }},
    {"atomic_fetch_add",
     [](shmem_ctx_t ctx) {
         CHECK_EQ(shmem_ctx_uint64_atomic_fetch_add(ctx, &target->flag, 1, next), round_number - 1);
     }},
    {"put_signal",
     [](shmem_ctx_t ctx) {
         shmem_ctx_uint64_put_signal(ctx, &target->beside, values.data(), 1, &target->flag, 1, SHMEM_SIGNAL_ADD, next);
     }},
};

// --- How the writer hands over.

enum class Means { kAtomic, kMutex, kBarrier, kNewThread };
constexpr const char* kMeansNames[] = {"an atomic", "a mutex", "a barrier", "a new thread"};

class HandOver {
  public:
    void give(Means means) {
        if (means == Means::kAtomic) {
            given_.store(true, std::memory_order_release);
        } else if (means == Means::kMutex) {
            {
                const std::lock_guard lock(mutex_);
                locked_given_ = true;
            }
            changed_.notify_one();
        } else {
            barrier_.arrive_and_wait();
        }
    }
    void take(Means means) {
        if (means == Means::kAtomic) {
            while (!given_.load(std::memory_order_acquire)) std::this_thread::yield();
        } else if (means == Means::kMutex) {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [&] { return locked_given_; });
        } else {
            barrier_.arrive_and_wait();
        }
    }

  private:
    std::atomic<bool> given_{false};
    std::mutex mutex_;
    std::condition_variable changed_;
    bool locked_given_ = false;
    std::barrier<> barrier_{2};
};

// Threads that live as long as the program, and do what they are given.
class Worker {
  public:
    void start(std::function<void()> work) {
        {
            const std::lock_guard lock(mutex_);
            work_ = std::move(work);
        }
        changed_.notify_all();
    }
    void wait() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return !work_; });
    }
    void end() {
        start([this] { ended_ = true; });
        thread_.join();
    }

  private:
    void run() {
        while (!ended_) {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [&] { return static_cast<bool>(work_); });
            work_();
            work_ = nullptr;
            changed_.notify_all();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::function<void()> work_;
    bool ended_ = false;
    std::thread thread_{[this] { run(); }};
};
Worker* workers;

void put(shmem_ctx_t ctx, const Form& form) {
    subject = form.name;
    shmem_ctx_uint64_put(ctx, &target->words[kAhead], values.data(), kWords - kAhead, next);
    form.send(ctx);
}

void put_and_fence(shmem_ctx_t ctx, const Form& form) {
    put(ctx, form);
    shmem_ctx_fence(ctx);
}

void tell(shmem_ctx_t ctx, const Telling& telling) {
    subject = telling.name;
    telling.tell(ctx);
}

// The writer and the teller are any two threads of three, or of the new ones.
void send(shmem_ctx_t ctx, const Form& form, Means means, const Telling& telling) {
    const auto number = static_cast<int>(round_number);
    Worker &writer = workers[number % kWorkers], &teller = workers[(number + 1 + number / 7 % 2) % kWorkers];
    if (means == Means::kNewThread) {
        writer.start([&] {
            put_and_fence(ctx, form);
            std::thread([&] { tell(ctx, telling); }).join();
        });
        writer.wait();
        return;
    }
    HandOver hand_over;
    if (number % 4 == 0 && ctx != serialized)  // the fence finds the third thread sending
        for (Worker* third = workers; third != workers + kWorkers; ++third)
            if (third != &writer && third != &teller)
                third->start([&] {
                    for (uint64_t& word : target->aside) shmem_ctx_uint64_p(ctx, &word, round_number, next);
                });
    teller.start([&] {
        hand_over.take(means);
        tell(ctx, telling);
    });
    writer.start([&] {
        put_and_fence(ctx, form);
        hand_over.give(means);
    });
    for (int i = 0; i < kWorkers; ++i) workers[i].wait();
}

void exchange(shmem_ctx_t ctx, const char* kind, const Form& form, Means means, const Telling& telling) {
    ++round_number;
    std::fill(values.begin(), values.end(), round_number);
    send(ctx, form, means, telling);
    shmem_uint64_wait_until(&target->flag, SHMEM_CMP_EQ, round_number);
    static char what[200];
    snprintf(what, sizeof what, "%s; fence; %s; %s on %s", form.name, kMeansNames[static_cast<int>(means)],
             telling.name, kind);
    subject = what;
    form.check();
    check_words(kAhead, kWords - kAhead);
    shmem_quiet();
    shmem_ctx_quiet(ctx);
    shmem_uint64_atomic_set(&target->acknowledged, round_number, previous);
    shmem_uint64_wait_until(&target->acknowledged, SHMEM_CMP_GE, round_number);
}

shmem_ctx_t create(long options, shmem_team_t team = SHMEM_TEAM_WORLD) {
    shmem_ctx_t ctx = SHMEM_CTX_INVALID;
    CHECK_EQ(shmem_team_create_ctx(team, options, &ctx), 0);
    CHECK(ctx != SHMEM_CTX_INVALID);
    return ctx;
}

// A context that one thread at a time uses.
void by_one_thread(shmem_ctx_t ctx, const Form& form, const Telling& telling) {
    ++round_number;
    std::fill(values.begin(), values.end(), round_number);
    put_and_fence(ctx, form);
    tell(ctx, telling);
    shmem_uint64_wait_until(&target->flag, SHMEM_CMP_EQ, round_number);
    subject = "a PRIVATE context";
    form.check();
    shmem_ctx_quiet(ctx);
    shmem_uint64_atomic_set(&target->acknowledged, round_number, previous);
    shmem_uint64_wait_until(&target->acknowledged, SHMEM_CMP_GE, round_number);
}

// A fence by a thread that has sent nothing, between two that send; and one by each of them.
void between_two(shmem_ctx_t ctx, const Form& form, const Telling& telling, bool each_fences) {
    ++round_number;
    std::fill(values.begin(), values.end(), round_number);
    HandOver first, second;
    workers[0].start([&] {
        put(ctx, form);
        if (each_fences)
            shmem_ctx_fence(ctx);
        first.give(Means::kAtomic);
    });
    workers[1].start([&] {
        first.take(Means::kAtomic);
        shmem_ctx_fence(ctx);
        second.give(Means::kAtomic);
    });
    workers[2].start([&] {
        second.take(Means::kAtomic);
        if (each_fences)
            shmem_ctx_fence(ctx);
        tell(ctx, telling);
    });
    for (int i = 0; i < kWorkers; ++i) workers[i].wait();
    shmem_uint64_wait_until(&target->flag, SHMEM_CMP_EQ, round_number);
    subject = "a fence by a third thread";
    form.check();
    shmem_ctx_quiet(ctx);
    shmem_uint64_atomic_set(&target->acknowledged, round_number, previous);
    shmem_uint64_wait_until(&target->acknowledged, SHMEM_CMP_GE, round_number);
}

void every_way(shmem_ctx_t ctx, shmem_ctx_t of_one) {
    int turn = 0;
    for (const Form& form : kForms) {
        for (const Telling& telling : kTellings) {
            ++turn;
            for (Means means : {Means::kAtomic, Means::kMutex, Means::kBarrier, Means::kNewThread})
                exchange(ctx, "a context of many threads", form, means, telling);
            const auto some = static_cast<Means>(turn % 4);
            exchange(SHMEM_CTX_DEFAULT, "the default context", form, some, telling);
            exchange(serialized, "a SERIALIZED context", form, some, telling);
            by_one_thread(of_one, form, telling);
            between_two(ctx, form, telling, turn % 2 != 0);
            // No thread has sent anything on it before.
            for (Means means : {Means::kAtomic, Means::kNewThread}) {
                const shmem_ctx_t fresh = create(turn % 4 < 2 ? 0 : SHMEM_CTX_NOSTORE);
                exchange(fresh, "a new context", form, means, telling);
                shmem_ctx_destroy(fresh);
            }
        }
    }
}

}  // namespace

int main() {
    start("fences_across_threads");
    next = (pe + 1) % n_pes;
    previous = (pe + n_pes - 1) % n_pes;
    target = static_cast<Target*>(shmem_calloc(1, sizeof *target));
    CHECK(target != nullptr);
    values.resize(kWords);
    shmem_team_t everybody = SHMEM_TEAM_INVALID;
    CHECK_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n_pes, nullptr, 0, &everybody), 0);
    serialized = create(SHMEM_CTX_SERIALIZED);
    const shmem_ctx_t ctx = create(0, everybody), of_one = create(SHMEM_CTX_PRIVATE);
    workers = new Worker[kWorkers];
    for (uint64_t i = number("HEDDLE_TEST_ROUNDS", 1); i > 0; --i) every_way(ctx, of_one);
    for (int i = 0; i < kWorkers; ++i) workers[i].end();
    delete[] workers;
    for (const shmem_ctx_t made : {ctx, serialized, of_one}) shmem_ctx_destroy(made);
    shmem_team_destroy(everybody);
    shmem_barrier_all();
    shmem_free(target);
    return finish();
}
