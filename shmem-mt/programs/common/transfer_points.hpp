// Turns transfers into printed points: validate each, measure them interleaved, convert seconds into the
// metric. Names that no library can serve are skipped by name, with the reason.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "programs/common/transfer.hpp"

namespace shmem_mt {

enum class Metric { kRate, kBandwidth, kLatency };

// A row of a program's table of operations: the name on the command line and in results, what it is, the
// synchronization it is reported with, and whether it is measured by size (otherwise at 8 bytes).
struct OpName {
    const char* name;
    Op op;
    const char* sync;
    bool sized;
    Requests requests = Requests::kNone;
};

struct NamedTransfer {
    std::string op;
    std::string sync;
    TransferSpec spec;
};

inline std::string context_name(Route route) {
    static const char* const kNames[] = {"default", "shared", "private", "none", "none"};
    return kNames[static_cast<int>(route)];
}

// The reference to `spec` by plain loads and stores: through the peer's mapping when there is one, else in
// own memory.
inline TransferSpec plain_twin(Job& job, TransferMemory& memory, TransferSpec spec) {
    Report mine;
    mine.ok = shmem_ptr(memory.window(spec.on_heap), job.partner()) != nullptr;
    spec.route = job.agree(mine).ok ? Route::kPlainPeer : Route::kPlainPrivate;
    return spec;
}

inline Json transfer_params(Job& job, const NamedTransfer& named) {
    Json params = job.params(named.op);
    params.integer("size_bytes", named.spec.size_bytes).text("placement", named.spec.on_heap ? "heap" : "static");
    params.text("context", context_name(named.spec.route)).text("sync", named.sync);
    if (!op_reads(named.spec.op) && !op_is_atomic_update(named.spec.op))
        params.text("touch", "write-only");
    params.text("cache", named.spec.cold ? "cold" : "hot").integer("window_bytes", Transfer::window_bytes(named.spec));
    if (named.spec.slots == 1 && (op_reads(named.spec.op) || op_is_atomic_update(named.spec.op)))
        params.text("owner", "warm");
    if (named.spec.route == Route::kPlainPeer)
        params.text("target", "peer mapping");
    if (named.spec.route == Route::kPlainPrivate)
        params.text("target", "private memory");
    return params;
}

// One value a sample. Seconds an operation: `count` operations of each thread run side by side.
inline std::vector<double> metric_values(Job& job, const TransferSpec& spec, Metric metric, const Samples& samples) {
    const double senders = spec.bidirectional ? job.n_pes() : job.n_pes() / 2;
    const double count = static_cast<double>(samples.count);
    std::vector<double> values;
    for (const double seconds : samples.seconds) {
        const double rate = senders * job.threads() * count / seconds;
        if (metric == Metric::kRate)
            values.push_back(rate);
        if (metric == Metric::kBandwidth)
            values.push_back(rate * static_cast<double>(spec.size_bytes));
        if (metric == Metric::kLatency)
            values.push_back(seconds / count);
    }
    return values;
}

// Collective. All of `group` must have windows of the same size.
inline void run_transfers(Job& job, TransferMemory& memory, const char* benchmark, Metric metric,
                          const std::vector<NamedTransfer>& group) {
    std::vector<std::unique_ptr<Transfer>> transfers;
    std::vector<Agreed> verdicts;
    std::vector<Body> bodies;
    std::vector<double> bytes;
    for (const auto& named : group) {
        transfers.push_back(std::make_unique<Transfer>(job, memory, named.spec));
        Transfer* transfer = transfers.back().get();
        if (job.options().validate)
            verdicts.push_back(transfer->validate());
        bodies.push_back([transfer](long count) { return transfer->sample(count); });
        bytes.push_back(static_cast<double>(named.spec.size_bytes));
    }
    const TimeOf time_of = metric == Metric::kLatency ? TimeOf::kSlowestPe : TimeOf::kCommonWindow;
    std::vector<Samples> samples = measure(job, bodies, time_of, bytes);
    for (size_t i = 0; i < group.size() && metric == Metric::kLatency; ++i) {
        stamp_operations(job, samples[i], [&](long count, std::vector<Histogram>& histograms) {
            return transfers[i]->sample(count, &histograms);
        });
    }
    static const char* const kNames[] = {"rate", "bandwidth", "latency"};
    static const char* const kUnits[] = {"messages/s", "bytes/s", "s"};
    for (size_t i = 0; i < group.size(); ++i) {
        print_point(job, benchmark, transfer_params(job, group[i]), kNames[static_cast<int>(metric)],
                    kUnits[static_cast<int>(metric)], metric_values(job, group[i].spec, metric, samples[i]), samples[i],
                    job.options().validate ? &verdicts[i] : nullptr);
    }
}

// The routes that --contexts asks for and the library has; says by name what is skipped.
inline std::vector<Route> wanted_routes(Job& job, const char* benchmark) {
    std::vector<Route> routes;
    for (const auto& context : job.options().contexts) {
        const Route route = context == "private"  ? Route::kPrivateContext
                            : context == "shared" ? Route::kSharedContext
                                                  : Route::kDefaultContext;
        if (job.why_no_context(route).empty())
            routes.push_back(route);
        else
            job.skip(benchmark, "context=" + context, job.why_no_context(route));
    }
    return routes;
}

// True when the program may go on; otherwise everything has been skipped by name.
inline bool threads_available(Job& job, const char* benchmark) {
    if (job.thread_level_ok())
        return true;
    job.skip(benchmark, "threads=" + std::to_string(job.threads()), "the library does not give SHMEM_THREAD_MULTIPLE");
    return false;
}

}  // namespace shmem_mt
