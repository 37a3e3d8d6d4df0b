// What shmemx.h adds to contexts: ORDERED and RELAXED, what a context tells of itself, its quiets that do not block or
// look at sources alone. HEDDLE_TEST_CYCLES: so many creations from each of 4 threads at once, and nothing grows.
#include "check.h"

#include <heddle/hot_path.h>
#include <shmemx.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

using namespace conformance;

namespace {

constexpr size_t kBytes = 3 * HEDDLE_LARGE_BYTES + 5;
unsigned char* heap;
uint64_t word, before_word;
int next;

shmem_ctx_t create(bool on_team, shmem_team_t team, long options) {
    shmem_ctx_t ctx = SHMEM_CTX_INVALID;
    CHECK_EQ(on_team ? shmem_team_create_ctx(team, options, &ctx) : shmem_ctx_create(options, &ctx), 0);
    CHECK(ctx != SHMEM_CTX_INVALID);
    return ctx;
}

const char* text(const char* name) {
    const char* const found = getenv(name);
    return found ? found : "";
}

// Of the network; 0: there is none.
int n_rails() {
    const bool on_one_node = shmem_team_n_pes(SHMEM_TEAM_SHARED) == n_pes;
    return on_one_node ? 0 : static_cast<int>(number("HEDDLE_NET_RAILS", 1));
}

size_t bytes_of(shmem_ctx_t ctx) {
    shmemx_ctx_info_t info;
    CHECK_EQ(shmemx_ctx_info(ctx, &info), 0);
    return info.bytes;
}

// Everything that a context does, on one of these options; a large transfer as well.
void use(shmem_ctx_t ctx, int target) {
    static uint64_t round = 0;
    static std::vector<unsigned char> mine(kBytes), got(kBytes);
    random_for(++round, static_cast<uint64_t>(pe)).fill(mine.data(), kBytes);
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    shmemx_ctx_putmem_nbe(ctx, heap, mine.data(), kBytes, target, &request);
    shmemx_ctx_quiet_local(ctx);
    shmem_ctx_putmem_nbi(ctx, heap + kBytes, mine.data(), 100, target);
    shmem_ctx_fence(ctx);
    shmem_ctx_uint64_p(ctx, &before_word, round, target);
    shmem_ctx_uint64_atomic_set(ctx, &word, round, target);
    while (shmemx_ctx_quiet_test(ctx) == 0) continue;
    CHECK_EQ(shmemx_ctx_quiet_test(ctx), 1);
    CHECK_EQ(shmem_ctx_uint64_atomic_fetch(ctx, &word, target), round);
    CHECK_EQ(shmem_ctx_uint64_g(ctx, &before_word, target), round);
    shmem_ctx_getmem(ctx, got.data(), heap, kBytes, target);
    CHECK_BYTES("what a context put", got.data(), mine.data(), kBytes);
    shmem_ctx_getmem_nbi(ctx, got.data(), heap + kBytes, 100, target);
    shmem_ctx_quiet(ctx);
    CHECK_BYTES("what a context put without waiting", got.data(), mine.data(), 100);
    shmemx_request_wait(&request);
    shmem_barrier_all();
}

void kinds() {
    shmem_team_t reversed = SHMEM_TEAM_INVALID;
    CHECK_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, n_pes - 1, -1, n_pes, nullptr, 0, &reversed), 0);
    const long orders[] = {0, SHMEMX_CTX_ORDERED, SHMEMX_CTX_RELAXED};
    const long others[] = {0, SHMEM_CTX_SERIALIZED, SHMEM_CTX_PRIVATE, SHMEM_CTX_NOSTORE,
                           SHMEM_CTX_PRIVATE | SHMEM_CTX_NOSTORE};
    for (bool on_team : {false, true}) {
        for (long order : orders) {
            for (long other : others) {
                subject = on_team ? "shmem_team_create_ctx" : "shmem_ctx_create";
                const shmem_ctx_t ctx = create(on_team, reversed, order | other);
                shmemx_ctx_info_t info;
                memset(&info, 0x55, sizeof info);
                CHECK_EQ(shmemx_ctx_info(ctx, &info), 0);
                CHECK_EQ(info.options, order | other);
                CHECK_EQ(info.given & order, order);
                CHECK_EQ(info.stream_set, -1);  // no network
                CHECK_EQ(info.lock, 0);
                const bool reorders = strcmp(text("HEDDLE_ORDER"), "reorder") == 0;
                CHECK_EQ(info.rails, order == SHMEMX_CTX_ORDERED && !reorders ? std::min(n_rails(), 1) : n_rails());
                CHECK_EQ(info.order, order != SHMEMX_CTX_ORDERED ? SHMEMX_ORDER_NONE
                                     : info.rails > 1            ? SHMEMX_ORDER_REORDER
                                                                 : SHMEMX_ORDER_RAIL);
                CHECK(info.bytes > 0 && info.bytes <= 4096);
                use(ctx, on_team ? n_pes - 1 - next : next);
                shmem_ctx_destroy(ctx);
            }
        }
    }
    shmem_team_destroy(reversed);
}

void info_of_others() {
    subject = "shmemx_ctx_info";
    shmemx_ctx_info_t info;
    CHECK_EQ(shmemx_ctx_info(SHMEM_CTX_DEFAULT, &info), 0);
    CHECK(info.options == 0 && info.bytes > 0);
    const auto asked = number("HEDDLE_NET_CHANNELS", 0);  // 0: as the machine's cores have it
    if (n_rails() > 0 && asked == 0)
        CHECK(info.channels >= 1 && info.channels <= 4);
    else
        CHECK_EQ(info.channels, n_rails() > 0 ? asked : 0);
    CHECK_EQ(info.channel < 0, info.stream_set < 0);
    CHECK(info.channel < std::max(1, info.channels));
    CHECK(shmemx_ctx_info(SHMEM_CTX_INVALID, &info) != 0);
    CHECK_EQ(shmemx_ctx_quiet_test(SHMEM_CTX_DEFAULT), 1);
    // What one takes does not grow with the number of PEs, nor with its options.
    const shmem_ctx_t plain = create(false, nullptr, 0), ordered = create(false, nullptr, SHMEMX_CTX_ORDERED);
    CHECK_EQ(bytes_of(plain), bytes_of(ordered));
    shmem_ctx_destroy(plain), shmem_ctx_destroy(ordered);
}

// Behind an operation on a PE of another node.
shmemx_ctx_info_t use_and_ask(shmem_ctx_t ctx) {
    int far = 0;
    while (shmem_ptr(&word, far)) ++far;
    shmem_ctx_uint64_atomic_inc(ctx, &word, far);
    shmem_ctx_quiet(ctx);  // chaos keeps it until then
    shmemx_ctx_info_t info;
    CHECK_EQ(shmemx_ctx_info(ctx, &info), 0);
    return info;
}

// As many PRIVATE contexts as channels have one each, whatever was sent and created before; more have to share.
void channels() {
    subject = "channels of PRIVATE contexts";
    shmemx_ctx_info_t of_default;
    CHECK_EQ(shmemx_ctx_info(SHMEM_CTX_DEFAULT, &of_default), 0);
    const int n = of_default.channels;
    for (int round = 0; round < 3 && n > 0; ++round) {
        std::vector<shmem_ctx_t> contexts;
        std::vector<int> users(static_cast<size_t>(n));
        for (int i = 0; i < 2 * n; ++i) {
            contexts.push_back(create(i % 2, SHMEM_TEAM_WORLD, SHMEM_CTX_PRIVATE));
            const shmemx_ctx_info_t info = use_and_ask(contexts.back());
            CHECK(info.channel >= 0 && info.channel < n);
            CHECK_EQ(++users[static_cast<size_t>(info.channel)], i < n ? 1 : 2);
            CHECK(info.lock == 1 || i < n);
            CHECK(info.lock == 0 || i > 0 || round > 0 || n < 4);  // the first, before any thread has sent on all
            CHECK(info.bytes > HEDDLE_CONTEXT_BYTES);
            std::vector<std::thread> threads;  // what these send on weighs less, however many they are
            for (int j = 0; i == 0 && j < 9; ++j) threads.emplace_back(use_and_ask, SHMEM_CTX_DEFAULT);
            for (std::thread& thread : threads) thread.join();
        }
        const shmem_ctx_t other = create(false, nullptr, SHMEM_CTX_SERIALIZED);
        CHECK_EQ(use_and_ask(other).lock, 1);
        for (const shmem_ctx_t ctx : contexts) shmem_ctx_destroy(ctx);
        shmem_ctx_destroy(other);
    }
    shmem_barrier_all();  // `word` is used again
}

void both_at_once() {
    if (checked_run())
        return;
    subject = "SHMEMX_CTX_ORDERED | SHMEMX_CTX_RELAXED";
    shmem_ctx_t ctx = SHMEM_CTX_DEFAULT;
    CHECK(shmem_ctx_create(SHMEMX_CTX_ORDERED | SHMEMX_CTX_RELAXED, &ctx) != 0);
    CHECK(ctx == SHMEM_CTX_INVALID);
    ctx = SHMEM_CTX_DEFAULT;
    CHECK(shmem_team_create_ctx(SHMEM_TEAM_WORLD, SHMEMX_CTX_ORDERED | SHMEMX_CTX_RELAXED | SHMEM_CTX_PRIVATE, &ctx) !=
          0);
    CHECK(ctx == SHMEM_CTX_INVALID);
}

size_t resident_kb() {
    FILE* file = fopen("/proc/self/status", "r");
    char line[256];
    size_t kb = 0;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "VmRSS: %zu kB", &kb) == 1)
            break;
    if (file)
        fclose(file);
    CHECK(kb > 0);
    return kb;
}

void cycle(uint64_t times, size_t thread) {
    Random random = random_for(9, static_cast<uint64_t>(pe), thread);
    const long options[] = {0, SHMEM_CTX_PRIVATE, SHMEM_CTX_SERIALIZED, SHMEMX_CTX_ORDERED, SHMEMX_CTX_RELAXED};
    shmem_ctx_t alive[8] = {};
    for (uint64_t i = 0; i < times; ++i) {
        shmem_ctx_t& ctx = alive[random.below(8)];
        if (ctx)
            shmem_ctx_destroy(ctx);
        ctx = create(i % 2, SHMEM_TEAM_WORLD, options[random.below(5)]);
        if (i % 64 == 0)
            shmem_ctx_uint64_atomic_inc(ctx, &word, next);
    }
    for (shmem_ctx_t ctx : alive)
        if (ctx)
            shmem_ctx_destroy(ctx);
}

void cycles(uint64_t times) {
    constexpr size_t kThreads = 4;
    subject = "shmem_ctx_create by several threads";
    size_t resident[2] = {};
    for (uint64_t count : {times / 100, times}) {
        word = 0;
        shmem_barrier_all();
        std::vector<std::thread> threads;
        for (size_t thread = 0; thread < kThreads; ++thread) threads.emplace_back(cycle, count / kThreads, thread);
        for (std::thread& thread : threads) thread.join();
        shmem_barrier_all();
        CHECK_EQ(word, (count / kThreads + 63) / 64 * kThreads);
        resident[count == times] = resident_kb();
    }
    printf("VmRSS before and after %llu contexts: %zu kB, %zu kB\n", static_cast<unsigned long long>(times),
           resident[0], resident[1]);
    const char* sanitizer = getenv("HEDDLE_SANITIZER");  // its books grow
    CHECK((sanitizer && *sanitizer) || resident[1] <= resident[0] + 512);
}

}  // namespace

int main() {
    start("context_kinds");
    next = (pe + 1) % n_pes;
    heap = static_cast<unsigned char*>(shmem_malloc(kBytes + 100));
    kinds();
    info_of_others();
    channels();
    both_at_once();
    cycles(number("HEDDLE_TEST_CYCLES", 20000));
    return finish();
}
