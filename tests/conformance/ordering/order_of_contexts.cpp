// What a PE sees of another one's puts while they arrive: on SHMEMX_CTX_ORDERED no word before all that was put ahead
// of it, large puts among them; on SHMEMX_CTX_RELAXED nothing from behind a fence before all from before it, and no
// signal before its data. Enough of it that several messages are under way, on several rails where there are some.
#include "check.h"

#include <shmemx.h>
#include <algorithm>
#include <vector>

using namespace conformance;

namespace {

constexpr size_t kWords = 60000;
constexpr uint64_t kRounds = 12;

uint64_t* words;  // each has the number of the last round that has put it
uint64_t arrived;

uint64_t load(size_t i) {
    return __atomic_load_n(&words[i], __ATOMIC_ACQUIRE);
}

// Where the puts of a round begin that cover [first, last), and the end: single words and pieces up to `most` words.
// The same for who puts and who watches.
std::vector<size_t> pieces(uint64_t round, size_t first, size_t last, size_t most) {
    Random random = random_for(round);
    std::vector<size_t> starts = {first};
    while (starts.back() < last) {
        const size_t rest = last - starts.back();
        starts.push_back(starts.back() + (random.below(4) == 0 ? 1 + random.below(std::min(most, rest)) : 1));
    }
    return starts;
}

void put_all(shmem_ctx_t ctx, const std::vector<size_t>& starts, uint64_t round, int to) {
    static std::vector<uint64_t> values;
    values.assign(kWords, round);
    for (size_t i = 0; i + 1 < starts.size(); ++i) {
        uint64_t* const dest = &words[starts[i]];
        const size_t count = starts[i + 1] - starts[i];
        if (count == 1)
            shmem_ctx_uint64_p(ctx, dest, round, to);
        else
            shmem_ctx_uint64_put_nbi(ctx, dest, values.data(), count, to);
    }
}

// Whoever has seen a word of this round has all that was put before; of the same put maybe only a part.
void watch(const std::vector<size_t>& starts, uint64_t round) {
    Random random = random_for(round, 1);
    for (size_t seen = 0; seen + 2 < starts.size();) {
        size_t next = starts.size() - 1;  // the piece that is waited for
        while (next == starts.size() - 1) {
            const size_t probe = seen + 1 + random.below(starts.size() - 2 - seen);
            if (load(starts[probe]) >= round)
                next = probe;
            shmemx_progress();
        }
        for (size_t i = starts[seen]; i < starts[next]; ++i) CHECK(load(i) >= round);
        seen = next;
    }
}

void in_order(shmem_ctx_t ctx, uint64_t round, int from, int to) {
    subject = "SHMEMX_CTX_ORDERED";
    const std::vector<size_t> starts = pieces(round, 0, kWords, round % 2 == 0 ? 9000 : 40);
    if (pe == from)
        put_all(ctx, starts, round, to);
    if (pe == to && pe != from)
        watch(starts, round);
    shmem_ctx_quiet(ctx);
}

void behind_a_fence(shmem_ctx_t ctx, uint64_t round, int from, int to) {
    subject = "SHMEMX_CTX_RELAXED";
    const size_t half = kWords / 2;
    if (pe == from) {
        put_all(ctx, pieces(round, 0, half, round % 2 == 0 ? 12000 : 40), round, to);
        shmem_ctx_fence(ctx);
        put_all(ctx, pieces(round, half, kWords, 40), round, to);
    }
    if (pe == to && pe != from) {
        Random random = random_for(round, 1);
        size_t probe = half;
        while (load(probe) < round) {
            probe = half + random.below(kWords - half);
            shmemx_progress();
        }
        for (size_t i = 0; i < half; ++i) CHECK(load(i) >= round);
    }
    shmem_ctx_quiet(ctx);
}

void with_a_signal(shmem_ctx_t ctx, uint64_t round, int from, int to) {
    subject = "put_signal_nbi";
    static std::vector<uint64_t> values;
    const size_t count = 1 + random_for(round).below(kWords);
    if (pe == from) {
        values.assign(kWords, round);
        put_all(ctx, pieces(round, 0, kWords / 3, 100), round, to);
        shmem_ctx_uint64_put_signal_nbi(ctx, words, values.data(), count, &arrived, round, SHMEM_SIGNAL_SET, to);
    }
    if (pe == to) {
        shmem_signal_wait_until(&arrived, SHMEM_CMP_EQ, round);
        for (size_t i = 0; i < count; ++i) CHECK(load(i) >= round);
    }
    shmem_ctx_quiet(ctx);
}

}  // namespace

int main() {
    start("order_of_contexts");
    words = static_cast<uint64_t*>(shmem_calloc(kWords, sizeof *words));
    CHECK(words != nullptr);
    shmem_ctx_t ordered, relaxed;
    CHECK_EQ(shmem_ctx_create(SHMEMX_CTX_ORDERED, &ordered), 0);
    CHECK_EQ(shmem_ctx_create(SHMEMX_CTX_RELAXED | SHMEM_CTX_PRIVATE, &relaxed), 0);
    uint64_t number = 0;
    for (uint64_t round = 0; round < kRounds; ++round) {
        const int from = static_cast<int>(round) % n_pes, to = (from + 1) % n_pes;
        in_order(ordered, ++number, from, to);
        shmem_barrier_all();
        behind_a_fence(relaxed, ++number, from, to);
        shmem_barrier_all();
        with_a_signal(relaxed, ++number, from, to);
        shmem_barrier_all();
    }
    shmem_ctx_destroy(ordered);
    shmem_ctx_destroy(relaxed);
    shmem_free(words);
    return finish();
}
