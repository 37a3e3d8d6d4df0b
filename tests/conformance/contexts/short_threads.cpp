// Threads and contexts that come and go: what they take is given back, so that neither the stream sets of a context nor
// the mappings of the process grow with their number. HEDDLE_TEST_COUNT: of threads, of contexts ten times as many.
#include "check.h"

#include <pthread.h>
#include <shmemx.h>
#include <atomic>
#include <fstream>
#include <string>
#include <vector>

using namespace conformance;

namespace {

constexpr int kAtOnce = 16;
constexpr int kLeastStackPages = 16, kMoreStackPages = 1024;
long arrived[kAtOnce], last, of_ending;
pthread_key_t at_end;

int count_mappings() {
    std::ifstream maps("/proc/self/maps");
    int count = 0;
    for (std::string line; std::getline(maps, line);) ++count;
    return count;
}

int newest_stream_set() {
    shmemx_ctx_info_t info;
    CHECK_EQ(shmemx_ctx_info(SHMEM_CTX_DEFAULT, &info), 0);
    return info.stream_set;
}

void add_one(long* word) {
    shmem_long_atomic_add(word, 1, (pe + 1) % n_pes);
}

// As a program's own buffers that a thread sends when it ends.
struct Buffer {
    long* word = nullptr;
    ~Buffer() {
        if (word)
            add_one(word);
    }
};
thread_local Buffer buffer;

void* use(void* word) {
    buffer.word = static_cast<long*>(word);
    pthread_setspecific(at_end, word);
    add_one(static_cast<long*>(word));
    return nullptr;
}

void run_threads(int count) {
    for (int done = 0; done < count; done += kAtOnce) {
        pthread_t threads[kAtOnce];
        for (int i = 0; i < kAtOnce; ++i) {
            pthread_attr_t attributes;
            pthread_attr_init(&attributes);
            // Stacks of several sizes lie at several addresses, as do the threads' local objects.
            const int pages = kLeastStackPages + (done * 7919 + i * 104729) % kMoreStackPages;
            CHECK_EQ(pthread_attr_setstacksize(&attributes, static_cast<size_t>(pages) * 4096), 0);
            CHECK_EQ(pthread_create(&threads[i], &attributes, use, &arrived[i]), 0);
            pthread_attr_destroy(&attributes);
        }
        for (pthread_t thread : threads) pthread_join(thread, nullptr);
    }
}

void threads_come_and_go(int count) {
    subject = "threads that end";
    run_threads(8 * kAtOnce);
    const int sets_before = newest_stream_set(), mappings_before = count_mappings();
    run_threads(count);
    shmem_barrier_all();
    CHECK(newest_stream_set() <= std::max(sets_before, 2 * kAtOnce));
    CHECK(count_mappings() <= mappings_before + 8 * kAtOnce);
    const long rounds = 8 + (count + kAtOnce - 1) / kAtOnce;
    for (const long& word : arrived) CHECK_EQ(word, 3 * rounds);
}

void contexts_come_and_go(int count) {
    subject = "contexts that are destroyed";
    int mappings_before = 0;
    for (int i = 0; i < count; ++i) {
        shmem_ctx_t ctx = SHMEM_CTX_INVALID;
        CHECK_EQ(shmem_ctx_create(i % 3 == 0 ? SHMEM_CTX_PRIVATE : 0, &ctx), 0);
        shmem_ctx_long_p(ctx, &last, i, (pe + 1) % n_pes);
        shmem_ctx_destroy(ctx);
        if (i == 16)
            mappings_before = count_mappings();
    }
    CHECK(count_mappings() <= mappings_before + kAtOnce);
    shmem_barrier_all();
    CHECK_EQ(last, count - 1);
}

// A program knows that a thread has done its part before the thread has ended, and may destroy its context then.
void contexts_of_ending_threads(int count) {
    subject = "contexts that are destroyed while their threads end";
    struct Part {
        shmem_ctx_t ctx = SHMEM_CTX_INVALID;
        std::atomic<bool> is_done{false};
    };
    const auto work = [](void* given) -> void* {
        auto* const part = static_cast<Part*>(given);
        shmem_ctx_long_p(part->ctx, &of_ending, -1, (pe + 1) % n_pes);
        shmem_ctx_long_atomic_fetch(part->ctx, &of_ending, (pe + 1) % n_pes);
        shmem_ctx_quiet(part->ctx);
        part->is_done.store(true, std::memory_order_release);
        return nullptr;
    };
    for (int i = 0; i < count; ++i) {
        Part part;
        pthread_t thread;
        CHECK_EQ(shmem_ctx_create(0, &part.ctx), 0);
        CHECK_EQ(pthread_create(&thread, nullptr, work, &part), 0);
        while (!part.is_done.load(std::memory_order_acquire)) continue;
        shmem_ctx_destroy(part.ctx);
        pthread_join(thread, nullptr);
    }
    shmem_barrier_all();
    CHECK_EQ(of_ending, -1);
}

}  // namespace

int main() {
    start("short_threads");
    pthread_key_create(&at_end, [](void* word) { add_one(static_cast<long*>(word)); });
    const char* const given = getenv("HEDDLE_TEST_COUNT");
    const int count = given ? atoi(given) : 480;
    threads_come_and_go(count);
    contexts_come_and_go(10 * count);
    contexts_of_ending_threads(count);
    shmem_barrier_all();
    return finish();
}
