#include "profiling/clocks.h"

#include "bootstrap/bootstrap.h"
#include "operations/observer.h"
#include "operations/order.h"
#include "operations/rma.h"
#include "os/clock.h"
#include "progress/wait_policy.h"

#include <algorithm>

namespace heddle::profiling {

namespace {

constexpr uint64_t kRounds = 16, kLeastRounds = 2, kStop = 99, kLongestNs = 10 * os::kMillisecondNs;

uint64_t load(const uint64_t& word) {
    return __atomic_load_n(&word, __ATOMIC_ACQUIRE);  // of a put by the other PE
}

void put(const char* function, uint64_t& word, uint64_t value, int pe) {
    operations::slow_put(function, SHMEM_CTX_DEFAULT, &word, &value, 1, sizeof value, pe);
    operations::quiet(function, SHMEM_CTX_DEFAULT);
}

// PE 0 asks `pe`, for a while.
ClockOffset ask(const char* function, TraceHead& head, uint64_t first, int pe) {
    ClockOffset best = {0, UINT64_MAX};
    const uint64_t begin = os::now_ns();
    for (uint64_t round = first; round < first + kRounds; ++round) {
        if (round >= first + kLeastRounds && os::now_ns() - begin > kLongestNs)
            break;
        __atomic_store_n(&head.pong, 0, __ATOMIC_RELAXED);
        const uint64_t before = os::now_ns();
        put(function, head.ping, round, pe);
        progress::wait_for_store(function, &head.pong, [&] { return load(head.pong) != 0; });
        const uint64_t after = os::now_ns(), half = (after - before + 1) / 2;
        if (half < best.error_ns)
            best = {static_cast<int64_t>(before + half) - static_cast<int64_t>(load(head.pong)), half};
    }
    put(function, head.ping, first + kStop, pe);
    return best;
}

void answer(const char* function, TraceHead& head, uint64_t first) {
    for (uint64_t seen = first - 1;;) {
        progress::wait_for_store(function, &head.ping, [&] { return load(head.ping) > seen; });
        seen = load(head.ping);
        if (seen == first + kStop)
            return;
        put(function, head.pong, os::now_ns(), 0);
    }
}

}  // namespace

std::vector<ClockOffset> measure_clocks(const char* function, TraceHead& head, bool at_end) {
    const bootstrap::Job& job = bootstrap::job;
    const operations::Unobserved mark;
    const uint64_t first = at_end ? 1001 : 1;
    std::vector<ClockOffset> offsets;
    if (job.pe == 0)
        offsets.resize(static_cast<size_t>(job.n_nodes));
    std::vector<bool> has_met(static_cast<size_t>(job.n_nodes));
    has_met[static_cast<size_t>(job.node_of(0))] = true;
    for (int pe = 1; pe < std::min(job.n_pes, kTracedPes); ++pe) {
        const auto node = static_cast<size_t>(job.node_of(pe));
        if (has_met[node])
            continue;
        has_met[node] = true;
        if (job.pe == 0)
            offsets[node] = ask(function, head, first, pe);
        else if (job.pe == pe)
            answer(function, head, first);
    }
    return offsets;
}

}  // namespace heddle::profiling
