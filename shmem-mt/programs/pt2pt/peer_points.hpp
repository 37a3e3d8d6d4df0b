// Points of another interface than OpenSHMEM's, with the fields by which reports put them beside those of a library.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "programs/pt2pt/peer_round_trip.hpp"
#include "programs/pt2pt/peer_transfer.hpp"
#include "programs/pt2pt/window_slots.hpp"

namespace shmem_mt {

enum class PeerMetric { kRate, kBandwidth, kLatency };

// A benchmark of which another interface has a part, and that part.
struct PeerBenchmark {
    const char* name;
    PeerMetric metric;
    std::vector<long> sizes;         // of which none are given
    long (*slots)(long size_bytes);  // messages of a window, and of an epoch

    PeerSpec spec(PeerOp op, long size_bytes) const { return {op, size_bytes, slots(size_bytes), slots(size_bytes)}; }

    // The largest window of these sizes, of one thread.
    long most_bytes(const std::vector<long>& sizes_asked) const {
        long most = 8 * slots(8);
        for (const long size : sizes_asked) most = std::max(most, slots(size) * std::max(8L, size));
        return most;
    }
};

inline const PeerBenchmark kPeerBenchmarks[] = {
    {"message-rate", PeerMetric::kRate, {8, 64, 512, 4096}, rate_slots},
    {"latency", PeerMetric::kLatency, {8, 1024, 65536}, [](long) { return 1L; }},
    {"bandwidth",
     PeerMetric::kBandwidth,
     {1024, 65536, 1048576},
     [](long size_bytes) { return bandwidth_slots(size_bytes, false, 1); }},
};

// A row of a program's table: an operation of one of these benchmarks.
struct PeerOpName {
    PeerMetric benchmark;
    const char* name;
    PeerOp op;
    bool sized;  // otherwise at 8 bytes
    bool goes_there_and_back = false;
    const char* two_sided = nullptr;  // MPI: the operation of messages beside it
};

// The command line of such a program: the benchmark of --benchmark, and its operations of the table. Ends the program
// as parse_options does.
struct PeerCommand {
    const PeerBenchmark* benchmark = nullptr;
    Options options;
    std::vector<PeerOpName> ops;

    template <size_t n>
    PeerCommand(int argc, char** argv, const PeerOpName (&table)[n]) {
        std::vector<std::string> every;
        for (const PeerOpName& row : table) every.push_back(row.name);
        Options defaults;
        defaults.ops = {"all"};
        every.push_back("all");
        options = parse_options(argc, argv, defaults, every);
        for (const PeerBenchmark& one : kPeerBenchmarks) {
            if (options.benchmark == one.name)
                benchmark = &one;
        }
        if (benchmark == nullptr)
            usage_error(argv[0], "--benchmark " + options.benchmark + ": there are message-rate, latency, bandwidth");
        for (const PeerOpName& row : table) {
            if (row.benchmark == benchmark->metric && (options.wants_op("all") || options.wants_op(row.name)))
                ops.push_back(row);
        }
        if (options.sizes.empty())
            options.sizes = benchmark->sizes;
    }

    std::vector<long> sizes_of(const PeerOpName& op) const { return op.sized ? options.sizes : std::vector<long>{8}; }
};

// A stream or a round trip, and what its point says.
struct PeerPoint {
    std::string op, sync;
    PeerSpec spec;
    std::shared_ptr<PeerTransfer> transfer;  // one of the two
    std::shared_ptr<PeerRoundTrip> round_trip;
    std::string mechanism;  // what carries a message; empty: what the interface chooses
    long pack_bytes = 0;    // of the active messages that messages are packed into; 0: they are not
};

inline Json peer_params(Session& session, const PeerPoint& point, const char* api) {
    const PeerSpec& spec = point.spec;
    const bool writes = spec.op == PeerOp::kPut;
    Json params = session.params(point.op);
    params.text("api", api).integer("size_bytes", spec.size_bytes).text("placement", "heap");
    params.text("context", session.threads() == 1 ? "default" : "private").text("sync", point.sync);
    if (writes)
        params.text("touch", point.round_trip ? "read" : "write-only");
    params.text("cache", "hot").integer("window_bytes", spec.window_bytes());
    if (!writes && spec.slots == 1)
        params.text("owner", "warm");
    if (!point.mechanism.empty())
        params.text("mechanism", point.mechanism);
    if (point.pack_bytes > 0)
        params.integer("pack_bytes", point.pack_bytes);
    return params;
}

// One value a sample, as metric_values (transfer_points.hpp) has them.
inline std::vector<double> peer_values(const Session& session, const PeerSpec& spec, PeerMetric metric,
                                       const Samples& samples) {
    const double count = static_cast<double>(samples.count);
    std::vector<double> values;
    for (const double seconds : samples.seconds) {
        const double rate = session.n_pes() / 2 * session.threads() * count / seconds;
        values.push_back(metric == PeerMetric::kLatency ? seconds / count
                         : metric == PeerMetric::kRate  ? rate
                                                        : rate * static_cast<double>(spec.size_bytes));
    }
    return values;
}

// Validates the points, measures them in turns, and prints them. Collective.
inline void run_peer_points(Session& session, const PeerBenchmark& benchmark, const char* api,
                            const std::vector<PeerPoint>& points) {
    const PeerMetric metric = benchmark.metric;
    std::vector<Agreed> verdicts;
    std::vector<Body> bodies;
    std::vector<double> bytes;
    for (const PeerPoint& point : points) {
        if (session.options().validate)
            verdicts.push_back(point.transfer ? point.transfer->validate() : point.round_trip->validate());
        bodies.push_back([&point](long count) {
            return point.transfer ? point.transfer->sample(count) : point.round_trip->sample(count);
        });
        bytes.push_back(static_cast<double>(point.spec.size_bytes) * (point.round_trip ? 2 : 1));
    }
    const TimeOf time_of = metric == PeerMetric::kLatency ? TimeOf::kSlowestPe : TimeOf::kCommonWindow;
    std::vector<Samples> samples = measure(session, bodies, time_of, bytes);
    for (size_t i = 0; i < points.size() && metric == PeerMetric::kLatency; ++i) {
        stamp_operations(session, samples[i], [&](long count, std::vector<Histogram>& histograms) {
            return points[i].transfer ? points[i].transfer->sample(count, &histograms)
                                      : points[i].round_trip->sample(count, &histograms);
        });
    }
    static const char* const kNames[] = {"rate", "bandwidth", "latency"};
    static const char* const kUnits[] = {"messages/s", "bytes/s", "s"};
    for (size_t i = 0; i < points.size(); ++i) {
        print_point(session, benchmark.name, peer_params(session, points[i], api), kNames[static_cast<int>(metric)],
                    kUnits[static_cast<int>(metric)], peer_values(session, points[i].spec, metric, samples[i]),
                    samples[i], session.options().validate ? &verdicts[i] : nullptr);
    }
}

}  // namespace shmem_mt
