// MPI between two PEs, beside latency, bandwidth and message-rate (--benchmark): puts, gets and atomic operations on
// windows under each synchronization, and two-sided messages. Those of one operation and size are measured in turns.
// An epoch has as many messages as the window has slots, of latency one. Nobody reads what a stream brings.
#include <memory>
#include <string>
#include <vector>

#include "programs/pt2pt/mpi_transfer.hpp"
#include "programs/pt2pt/peer_points.hpp"

namespace shmem_mt {
namespace {

constexpr PeerMetric kRate = PeerMetric::kRate, kLatency = PeerMetric::kLatency, kBandwidth = PeerMetric::kBandwidth;
constexpr PeerOpName kOps[] = {
    {kRate, "put_nbi", PeerOp::kPut, true, false, "send"},
    {kRate, "get_nbi", PeerOp::kGet, true},
    {kRate, "atomic_add", PeerOp::kAdd, false},
    {kRate, "atomic_fetch_add_nbi", PeerOp::kFetchAdd, false},
    {kLatency, "put_round_trip", PeerOp::kPut, true, true, "send_round_trip"},
    {kLatency, "p_quiet", PeerOp::kPut, false},
    {kLatency, "put_quiet", PeerOp::kPut, true},
    {kLatency, "get", PeerOp::kGet, true},
    {kLatency, "atomic_add_quiet", PeerOp::kAdd, false},
    {kLatency, "atomic_fetch_add", PeerOp::kFetchAdd, false},
    {kBandwidth, "put", PeerOp::kPut, true, false, "send"},
    {kBandwidth, "get", PeerOp::kGet, true},
};

std::vector<PeerPoint> points_of(MpiJob& job, const MpiPairs& pairs, const PeerOpName& op, const PeerSpec& spec) {
    std::vector<PeerPoint> points;
    for (const MpiSync sync : {MpiSync::kFlush, MpiSync::kLock, MpiSync::kFence, MpiSync::kPscw, MpiSync::kWaitall}) {
        const char* const name = kMpiSyncNames[static_cast<int>(sync)];
        const bool messages = sync == MpiSync::kWaitall;
        const bool passive = sync == MpiSync::kFlush || sync == MpiSync::kLock;
        if (!job.options().wants_sync(name) || (messages && op.two_sided == nullptr) ||
            (passive && op.goes_there_and_back))
            continue;
        PeerPoint point{messages ? op.two_sided : op.name, name, spec, nullptr, nullptr, "", 0};
        if (op.goes_there_and_back)
            point.round_trip = std::make_shared<MpiRoundTrip>(job, pairs, spec.size_bytes, sync);
        else
            point.transfer = std::make_shared<MpiTransfer>(job, pairs, spec, sync);
        points.push_back(std::move(point));
    }
    return points;
}

void run_all(MpiJob& job, const PeerCommand& command) {
    const PeerBenchmark& benchmark = *command.benchmark;
    const MpiPairs pairs(job, benchmark.most_bytes(command.options.sizes));
    for (const PeerOpName& op : command.ops) {
        for (const long size : command.sizes_of(op))
            run_peer_points(job, benchmark, "MPI", points_of(job, pairs, op, benchmark.spec(op.op, size)));
    }
}

}  // namespace
}  // namespace shmem_mt

int main(int argc, char** argv) {
    using namespace shmem_mt;
    const PeerCommand command(argc, argv, kOps);
    const char* const name = command.benchmark->name;
    MpiJob job(name, command.options, true);
    if (!job.thread_level_ok())
        job.skip(name, "threads=" + std::to_string(job.threads()), "MPI does not give MPI_THREAD_MULTIPLE");
    else if (job.n_pes() % 2 != 0)
        job.skip(name, "pes=" + std::to_string(job.n_pes()), "the number of PEs must be even");
    else
        run_all(job, command);
    job.finish();
    return 0;
}
