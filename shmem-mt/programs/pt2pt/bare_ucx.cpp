// Bare UCX between two PEs, beside latency, bandwidth and message-rate (--benchmark): what a library over the same
// transports can reach at best. Puts and gets one-sided; by active messages, one by one; and packed. Those of one
// operation and size are measured in turns. A sample of message-rate and bandwidth is completed as a whole, each of
// latency before the next. Nobody reads what a stream brings.
#include <memory>
#include <string>
#include <vector>

#include "programs/pt2pt/peer_points.hpp"
#include "programs/pt2pt/ucx_transfer.hpp"

namespace shmem_mt {
namespace {

constexpr long kPackBytes[] = {4096, 16384, 65536};
constexpr long kMostFetched = 4096;  // larger gets are one-sided alone

constexpr PeerMetric kRate = PeerMetric::kRate, kLatency = PeerMetric::kLatency, kBandwidth = PeerMetric::kBandwidth;
constexpr PeerOpName kOps[] = {
    {kRate, "put_nbi", PeerOp::kPut, true},
    {kRate, "get_nbi", PeerOp::kGet, true},
    {kLatency, "put_round_trip", PeerOp::kPut, true, true},
    {kLatency, "p_quiet", PeerOp::kPut, false},
    {kLatency, "put_quiet", PeerOp::kPut, true},
    {kLatency, "get", PeerOp::kGet, true},
    {kBandwidth, "put", PeerOp::kPut, true},
    {kBandwidth, "get", PeerOp::kGet, true},
};

std::vector<PeerPoint> points_of(Job& job, const UcxPairs& pairs, const PeerOpName& op, const PeerSpec& spec) {
    std::vector<PeerPoint> points;
    const auto add = [&](UcxWay way, long pack_bytes, const char* sync, const char* mechanism) {
        if (!job.options().wants_sync(sync))
            return;
        PeerPoint point{op.name, sync, spec, nullptr, nullptr, mechanism, pack_bytes};
        if (op.goes_there_and_back)
            point.round_trip = std::make_shared<UcxRoundTrip>(job, pairs, spec.size_bytes);
        else
            point.transfer = std::make_shared<UcxTransfer>(job, pairs, spec, way, pack_bytes);
        points.push_back(std::move(point));
    };
    if (!op.goes_there_and_back)
        add(UcxWay::kOneSided, 0, "flush", op.op == PeerOp::kGet ? "get" : "put");
    if (op.op == PeerOp::kGet && spec.size_bytes > kMostFetched)
        return points;
    add(UcxWay::kMessage, 0, "answer", "message");
    for (const long pack_bytes : kPackBytes) {
        if (op.benchmark == kRate && UcxTransfer::fits(spec.size_bytes, pack_bytes))
            add(UcxWay::kPack, pack_bytes, "answer", "packed");
    }
    return points;
}

void run_all(Job& job, const PeerCommand& command) {
    const PeerBenchmark& benchmark = *command.benchmark;
    const UcxPairs pairs(job, benchmark.most_bytes(command.options.sizes));
    for (const PeerOpName& op : command.ops) {
        for (const long size : command.sizes_of(op))
            run_peer_points(job, benchmark, "UCX", points_of(job, pairs, op, benchmark.spec(op.op, size)));
    }
}

}  // namespace
}  // namespace shmem_mt

int main(int argc, char** argv) {
    using namespace shmem_mt;
    const PeerCommand command(argc, argv, kOps);
    Job job(command.benchmark->name, command.options);
    if (job.thread_level_ok())
        run_all(job, command);
    else
        job.skip(command.benchmark->name, "threads=" + std::to_string(job.threads()),
                 "the library does not give SHMEM_THREAD_MULTIPLE");
    job.finish();
    return 0;
}
