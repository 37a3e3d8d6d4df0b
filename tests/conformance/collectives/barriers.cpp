// barrier_all and sync_all: nobody passes before all have come, many rounds, with PEs late at random; a barrier
// completes puts. fence, quiet and pe_quiet in every form, also for empty lists.
#include "check.h"
#include "tables.h"

#include <unistd.h>

using namespace conformance;

namespace {

constexpr int kMaxPes = 8;
uint64_t arrived[kMaxPes];  // rounds each PE has come to, as it told me
uint64_t received[kMaxPes];

void (*const kBarriers[])() = {shmem_barrier_all, shmem_sync_all};
const char* const kNames[] = {"shmem_barrier_all", "shmem_sync_all"};

// Everybody tells everybody its round, meets, and looks: all are in this round, or one ahead.
void rounds_together(size_t which, uint64_t first, uint64_t rounds, size_t lateness) {
    subject = kNames[which];
    Random random = random_for(which, static_cast<uint64_t>(pe), first);
    for (uint64_t round = first + 1; round <= first + rounds; ++round) {
        if (lateness && random.below(lateness) == 0)
            usleep(static_cast<useconds_t>(random.below(3000)));
        for (int to = 0; to < n_pes; ++to) shmem_uint64_p(&arrived[pe], round, to);
        if (which == 1)
            shmem_quiet();  // sync_all completes local stores alone
        kBarriers[which]();
        for (int from = 0; from < n_pes; ++from) {
            const uint64_t there = shmem_uint64_g(&arrived[from], pe);
            if (there != round && there != round + 1)
                CHECK_EQ(there, round);
        }
    }
}

// The next round's first store may be here already, so two variables take turns.
void barrier_completes_puts() {
    subject = "shmem_barrier_all";
    static uint64_t* heap[2];
    for (auto& area : heap) area = static_cast<uint64_t*>(shmem_malloc(kMaxPes * sizeof(uint64_t)));
    for (uint64_t round = 1; round <= 200; ++round) {
        const uint64_t value = round * 100 + static_cast<uint64_t>(pe);
        for (int to = 0; to < n_pes; ++to) shmem_put64_nbi(&heap[round % 2][pe], &value, 1, to);
        shmem_barrier_all();
        for (int from = 0; from < n_pes; ++from)
            CHECK_EQ(heap[round % 2][from], round * 100 + static_cast<uint64_t>(from));
    }
}

enum Order { kFence, kCtxFence, kQuiet, kCtxQuiet, kPeQuiet, kCtxPeQuiet, kOrders };

void order(Order which, const int* pes, size_t count) {
    switch (which) {
        case kFence:
            return shmem_fence();
        case kCtxFence:
            return shmem_ctx_fence(conformance_ctx);
        case kQuiet:
            return shmem_quiet();
        case kCtxQuiet:
            return shmem_ctx_quiet(conformance_ctx);
        case kPeQuiet:
            return shmem_pe_quiet(pes, count);
        default:
            return shmem_ctx_pe_quiet(conformance_ctx, pes, count);
    }
}

// After any of them a put to oneself, or to the next PE and back, is there. The standard promises it behind a quiet of the
// context alone.
void completion() {
    subject = "fence, quiet, pe_quiet";
    const int all[kMaxPes] = {0, 1, 2, 3, 4, 5, 6, 7};
    const int twice[] = {pe, pe};
    const int next = (pe + 1) % n_pes;
    static uint64_t sources[51];  // of the rounds: they are read until the quiet
    for (int which = 0; which < kOrders; ++which) {
        const bool is_quiet =
            which == kCtxQuiet || which == kCtxPeQuiet || (which > kCtxFence && conformance_ctx == SHMEM_CTX_DEFAULT);
        order(static_cast<Order>(which), nullptr, 0);
        order(static_cast<Order>(which), twice, 2);
        for (uint64_t round = 1; round <= 50; ++round) {
            sources[round] = round;
            shmem_ctx_uint64_put_nbi(conformance_ctx, &received[pe], &sources[round], 1, next);
            order(static_cast<Order>(which), all, static_cast<size_t>(n_pes));
            const uint64_t there = shmem_ctx_uint64_g(conformance_ctx, &received[pe], next);
            if (is_quiet || !chaos_run())
                CHECK_EQ(there, round);
        }
        shmem_ctx_quiet(conformance_ctx);  // what follows would not be ordered behind it
        shmem_barrier_all();
    }
}

}  // namespace

int main() {
    start("barriers");
    CHECK(n_pes <= kMaxPes);
    const uint64_t rounds = 300;
    for (size_t which : {0, 1}) {
        rounds_together(which, which * (rounds + 40), rounds, 0);
        rounds_together(which, which * (rounds + 40) + rounds, 40, 4);
    }
    for (uint64_t round = 0; round < rounds; ++round) kBarriers[round % 3 == 0]();
    barrier_completes_puts();
    completion();
    return finish();
}
