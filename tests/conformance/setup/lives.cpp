// Init and finalize, many times over, with all that a program may leave behind: contexts and teams that it has not
// destroyed, operations and posted collectives under way, requests that it has not freed, a thread that goes on. What
// each life begins with is new: every value is checked, and nothing of an earlier life is seen.
#include "check.h"

#include <shmem.h>
#include <shmemx.h>
#include <condition_variable>
#include <mutex>
#include <thread>

using namespace conformance;

namespace {

constexpr int kLives = 40;
constexpr size_t kLarge = 20000;  // longs: more than what a record holds
const long kOptions[] = {0, SHMEM_CTX_SERIALIZED, SHMEM_CTX_PRIVATE, SHMEM_CTX_NOSTORE, SHMEMX_CTX_ORDERED};

long* heap;         // kLarge
long of_thread[2];  // put by the thread of another PE
long large[kLarge];
int next, previous;

long value_of(int life, int of_pe) {
    return 1000L * life + of_pe + 1;
}

// A thread that lives as long as the process. In each life it does on the default context what the main thread tells.
class LongLived {
  public:
    LongLived() : thread_([this] { run(); }) {}
    ~LongLived() {
        tell(-1);
        thread_.join();
    }
    // Returns when the thread is done with the life.
    void live(int life) {
        tell(life);
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return life_ == 0; });
    }

  private:
    void tell(int life) {
        const std::lock_guard lock(mutex_);
        life_ = life;
        changed_.notify_all();
    }
    void run() {
        std::unique_lock lock(mutex_);
        for (;;) {
            changed_.wait(lock, [&] { return life_ != 0; });
            if (life_ < 0)
                return;
            subject = "a thread of an earlier life";
            shmem_long_p(&of_thread[life_ % 2], value_of(life_, pe), next);
            shmem_quiet();
            CHECK_EQ(shmem_long_g(&of_thread[life_ % 2], next), value_of(life_, pe));
            life_ = 0;
            changed_.notify_all();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    int life_ = 0;  // to be lived; 0: none, -1: the end
    std::thread thread_;
};

// On a context of each kind, which are left as they are; the last put of each is under way at the end of the life.
void contexts(int life) {
    subject = "contexts";
    for (const long options : kOptions) {
        shmem_ctx_t ctx;
        CHECK_EQ(shmem_ctx_create(options, &ctx), 0);
        shmem_ctx_long_p(ctx, heap, value_of(life, pe), next);
        shmem_ctx_quiet(ctx);
        CHECK_EQ(shmem_ctx_long_g(ctx, heap, next), value_of(life, pe));
        shmem_ctx_long_put_nbi(ctx, heap, large, kLarge, next);
    }
}

// One alone: where it lies, one of an earlier life has lain.
void requests(int life) {
    subject = "requests";
    shmemx_request_t request;
    CHECK_EQ(shmemx_request_allocate(&request, life % 4 < 2 ? SHMEMX_REQUEST_SHARED : SHMEMX_REQUEST_PRIVATE), 0);
    long got = -1;
    shmemx_long_get_nbe(&got, &large[0], 1, next, &request);
    shmemx_request_wait(&request);
    CHECK_EQ(got, value_of(life, next));
    if (life % 8 < 2)
        shmemx_request_free(&request);
}

// On teams that are left as they are; the last collective is under way at the end of the life.
void teams(int life) {
    subject = "teams";
    static long sums[2], ones[2];
    for (int stride = 1; stride <= 2; ++stride) {
        shmem_team_t team = SHMEM_TEAM_INVALID;
        CHECK_EQ(
            shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, stride, (n_pes + stride - 1) / stride, nullptr, 0, &team), 0);
        if (team == SHMEM_TEAM_INVALID)
            continue;
        ones[0] = ones[1] = life;
        shmemx_request_t request = SHMEMX_REQUEST_NULL;
        CHECK_EQ(shmemx_long_sum_reduce_nbe(team, sums, ones, 2, &request), 0);
        shmemx_request_wait(&request);
        CHECK_EQ(sums[1], static_cast<long>(life) * shmem_team_n_pes(team));
        shmem_ctx_t ctx;
        CHECK_EQ(shmem_team_create_ctx(team, 0, &ctx), 0);
        shmem_ctx_quiet(ctx);
        static shmemx_request_t forgotten;
        forgotten = SHMEMX_REQUEST_NULL;
        CHECK_EQ(shmemx_team_sync_nbe(team, &forgotten), 0);
    }
}

void live(int life, LongLived& other) {
    heap = static_cast<long*>(shmem_calloc(kLarge, sizeof(long)));
    CHECK(heap);
    subject = "the heap";
    for (size_t i = 0; i < kLarge; ++i) CHECK_EQ(heap[i], 0L);
    for (long& one : large) one = value_of(life, pe);
    shmem_barrier_all();
    requests(life);
    other.live(life);
    contexts(life);
    teams(life);
    shmem_barrier_all();
    subject = "a thread of an earlier life";
    CHECK_EQ(of_thread[life % 2], value_of(life, previous));
    shmem_barrier_all();
}

}  // namespace

int main() {
    start("lives");
    next = (pe + 1) % n_pes;
    previous = (pe + n_pes - 1) % n_pes;
    finish();
    {
        LongLived other;
        for (int life = 1; life <= kLives; ++life) {
            int provided;
            CHECK_EQ(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided), 0);
            live(life, other);
            shmem_finalize();
        }
    }
    return 0;
}
