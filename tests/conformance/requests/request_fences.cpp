// What is posted to a request behind its fence is delivered behind what was posted before, whatever contexts and threads
// post: threads pass a request on, and put data, fence and put a flag, each through any context. The previous PE's data
// is there when its flag is. A ring: each PE puts to the next; its first thread looks.
#include "check.h"

#include <shmemx.h>
#include <algorithm>
#include <mutex>
#include <thread>
#include <vector>

using namespace conformance;

namespace {

constexpr size_t kSlots = 64;          // rounds whose data is there at once; those before have been looked at
constexpr size_t kRun = 3;             // words of a short put that inlined code leaves to the library
constexpr size_t kLargeWords = 12500;  // 100 KB: large data
constexpr uint64_t kMostPosted = 500;  // rounds before the request is waited for
constexpr int kWorkers = 3;

enum Form { kWord, kShort, kSet, kFetch, kCaptured, kCapturedShort, kLarge, kForms };

struct Target {
    uint64_t words[kSlots];
    uint64_t runs[kSlots][kRun];
    uint64_t large[kLargeWords];
    uint64_t flag;    // the rounds that are fenced
    uint64_t looked;  // of the PE that puts: the rounds that the next one has looked at
};
Target* target;
int next, previous;
uint64_t n_rounds;

// What a round puts: the same in the PE that puts and in the one that looks.
Form form_of(uint64_t round, int sender) {
    Random random = random_for(round, static_cast<uint64_t>(sender), 1);
    return random.below(50) == 0 ? kLarge : static_cast<Form>(random.below(kLarge));
}

// --- Of this PE's threads, which take turns by the lock.

std::mutex turn;
uint64_t round_number, posted, told, last_large;
shmemx_request_t request = SHMEMX_REQUEST_NULL;
shmem_ctx_t serialized, unrestricted;
uint64_t sources[kMostPosted][kRun], flags[kMostPosted], fetched[kMostPosted];
std::vector<uint64_t> large(kLargeWords);

class Worker {
  public:
    explicit Worker(int index) : random_(random_for(static_cast<uint64_t>(pe), static_cast<uint64_t>(index), 2)) {}
    void start() {
        thread_ = std::thread([this] {
            subject = "shmemx_request_fence";
            CHECK_EQ(shmem_ctx_create(SHMEM_CTX_PRIVATE, &own_), 0);
            while (take_turn()) std::this_thread::yield();
            shmem_ctx_destroy(own_);
        });
    }
    void end() { thread_.join(); }

  private:
    // A few steps; false: all rounds are done.
    bool take_turn() {
        const std::lock_guard lock(turn);
        for (size_t steps = 1 + random_.below(3); steps > 0 && told < n_rounds; --steps) {
            if (round_number == told)
                put_and_fence();
            else
                tell();
        }
        return told < n_rounds;
    }

    shmem_ctx_t any_context() {
        const shmem_ctx_t all[] = {SHMEM_CTX_DEFAULT, serialized, unrestricted, own_};
        if (random_.below(3) != 0)  // mostly the one before
            return all[last_];
        return all[last_ = random_.below(4)];
    }

    void put_and_fence() {
        if (posted == kMostPosted || random_.below(100) == 0)
            finish_request();
        ++round_number;
        const Form form = form_of(round_number, pe);
        if (round_number > kSlots)
            shmem_uint64_wait_until(&target->looked, SHMEM_CMP_GE, round_number - kSlots);
        const shmem_ctx_t ctx = any_context();
        uint64_t* const source = sources[posted];
        std::fill_n(source, kRun, round_number);
        uint64_t *const word = &target->words[round_number % kSlots], *const run = target->runs[round_number % kSlots];
        switch (form) {
            case kWord:
                shmemx_ctx_uint64_put_nbe(ctx, word, source, 1, next, &request);
                break;
            case kShort:
                shmemx_ctx_uint64_put_nbe(ctx, run, source, kRun, next, &request);
                break;
            case kFetch:
                shmemx_ctx_uint64_atomic_fetch_inc_nbe(ctx, &fetched[posted], &target->large[0], next, &request);
                [[fallthrough]];
            case kSet:
                shmemx_ctx_uint64_atomic_set_nbe(ctx, word, round_number, next, &request);
                break;
            case kCaptured:
            case kCapturedShort:
                shmemx_request_begin(&request);
                for (int i = 0; i < 3; ++i)  // the first two may be late: their value is the same
                    shmem_ctx_uint64_put_nbi(ctx, word, source, 1, next);
                if (form == kCapturedShort)
                    shmem_ctx_uint64_put_nbi(ctx, run, source, kRun, next);
                shmemx_request_end(&request);
                break;
            case kLarge:
                shmem_uint64_wait_until(&target->looked, SHMEM_CMP_GE, last_large);
                last_large = round_number;
                shmemx_request_wait_local(&request);
                std::fill(large.begin(), large.end(), round_number);
                shmemx_ctx_uint64_put_nbe(ctx, &target->large[1], large.data() + 1, kLargeWords - 1, next, &request);
                break;
            case kForms:
                break;
        }
        shmemx_request_fence(&request);
    }

    void tell() {
        told = round_number;
        flags[posted] = told;
        if (random_.below(2))
            shmemx_ctx_uint64_put_nbe(any_context(), &target->flag, &flags[posted], 1, next, &request);
        else
            shmemx_ctx_uint64_atomic_set_nbe(any_context(), &target->flag, told, next, &request);
        ++posted;
    }

    void finish_request() {
        if (random_.below(2)) {
            shmemx_request_t whole = SHMEMX_REQUEST_NULL;
            shmemx_request_merge(&whole, 1, &request);
            request = whole;
        }
        while (random_.below(2) && !shmemx_request_test(&request)) continue;
        shmemx_request_wait(&request);
        shmemx_request_free(&request);
        if (random_.below(4) == 0)
            CHECK_EQ(shmemx_request_allocate(&request, SHMEMX_REQUEST_SHARED), 0);
        posted = 0;
    }

    Random random_;
    shmem_ctx_t own_ = SHMEM_CTX_INVALID;
    size_t last_ = 0;
    std::thread thread_;
};

// --- What has come.

uint64_t load(const uint64_t* word) {
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

void check_round(uint64_t round) {
    const uint64_t* run = target->runs[round % kSlots];
    switch (form_of(round, previous)) {
        case kCapturedShort:
        case kShort:
            for (size_t i = 0; i < kRun; ++i) CHECK(load(&run[i]) == round);
            break;
        case kLarge:
            for (size_t i = 1; i < kLargeWords; ++i) CHECK(load(&target->large[i]) == round);
            break;
        default:
            CHECK(load(&target->words[round % kSlots]) == round);
    }
}

void look() {
    subject = "data behind the fence of a request";
    for (uint64_t seen = 0; seen < n_rounds;) {
        shmem_uint64_wait_until(&target->flag, SHMEM_CMP_GT, seen);
        const uint64_t flag = shmem_uint64_atomic_fetch(&target->flag, pe);  // what precedes it is seen
        CHECK(flag > seen);
        for (uint64_t round = seen + 1; round <= flag; ++round) check_round(round);
        seen = flag;
        shmem_uint64_p(&target->looked, seen, previous);
    }
}

}  // namespace

int main() {
    start("request_fences");
    next = (pe + 1) % n_pes;
    previous = (pe + n_pes - 1) % n_pes;
    n_rounds = number("HEDDLE_TEST_ROUNDS", checked_run() ? 300 : 3000);
    target = static_cast<Target*>(shmem_calloc(1, sizeof *target));
    CHECK(target != nullptr);
    CHECK_EQ(shmem_ctx_create(SHMEM_CTX_SERIALIZED, &serialized), 0);
    CHECK_EQ(shmem_ctx_create(0, &unrestricted), 0);
    std::vector<Worker> workers;
    for (int i = 0; i < kWorkers; ++i) workers.emplace_back(i);
    for (Worker& worker : workers) worker.start();
    look();
    for (Worker& worker : workers) worker.end();
    shmemx_request_free(&request);
    for (const shmem_ctx_t ctx : {serialized, unrestricted}) shmem_ctx_destroy(ctx);
    shmem_barrier_all();
    shmem_free(target);
    return finish();
}
