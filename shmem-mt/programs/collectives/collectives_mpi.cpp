// The collectives of MPI in the loop and with the checks of those of OpenSHMEM: the reference beside them.
#include "programs/common/mpi_job.hpp"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "programs/collectives/collectives.hpp"

namespace shmem_mt {
namespace {

static_assert(sizeof(long) == 8, "elements are 8 bytes");

class MpiCollectives final : public CollectiveLibrary {
  public:
    // Collective.
    explicit MpiCollectives(const MpiJob& job) {
        MPI_Comm_split(MPI_COMM_WORLD, job.me() % 2 == 0 ? 0 : MPI_UNDEFINED, job.me(), &strided_);
    }

    ~MpiCollectives() override {
        if (strided_ != MPI_COMM_NULL)
            MPI_Comm_free(&strided_);
    }

    MpiCollectives(const MpiCollectives&) = delete;
    MpiCollectives& operator=(const MpiCollectives&) = delete;

    std::string why_not(Collective op) const override {
        if (op == Collective::kSyncAll)
            return "MPI has one barrier only; see barrier_all";
        if (op == Collective::kAlltoalls)
            return "MPI has no all-to-all exchange with strides between elements";
        return "";
    }

    bool broadcast_fills_root() const override { return false; }

    bool run(const Call& call, long count, int) override {
        const MPI_Comm comm = call.team.name == "world" ? MPI_COMM_WORLD : strided_;
        const int n = static_cast<int>(call.nelems);
        void* const dest = call.dest;
        const void* const source = call.source;
        switch (call.op) {
            case Collective::kBarrierAll:
                return repeat(count, [=](long) { return MPI_Barrier(comm); });
            case Collective::kBroadcast: {
                // One buffer: what the root sends lies where the others receive.
                void* const buffer = call.team.me == 0 ? call.source : dest;
                return repeat(count, [=](long) { return MPI_Bcast(buffer, n, MPI_LONG, 0, comm); });
            }
            case Collective::kCollect:
                return collect(call, comm, count);
            case Collective::kFcollect:
                return repeat(count, [=](long) { return MPI_Allgather(source, n, MPI_LONG, dest, n, MPI_LONG, comm); });
            case Collective::kAlltoall:
                return repeat(count, [=](long) { return MPI_Alltoall(source, n, MPI_LONG, dest, n, MPI_LONG, comm); });
            case Collective::kSumReduce:
                return repeat(count, [=](long) { return MPI_Allreduce(source, dest, n, MPI_DOUBLE, MPI_SUM, comm); });
            case Collective::kMaxReduce:
                return repeat(count, [=](long) { return MPI_Allreduce(source, dest, n, MPI_LONG, MPI_MAX, comm); });
            case Collective::kSumInscan:
                return repeat(count, [=](long) { return MPI_Scan(source, dest, n, MPI_DOUBLE, MPI_SUM, comm); });
            default:
                return false;
        }
    }

  private:
    // MPI wants to be told what shmem_collect finds out.
    static bool collect(const Call& call, MPI_Comm comm, long count) {
        const int n = static_cast<int>(call.nelems);
        const std::vector<int> counts(static_cast<size_t>(call.team.size), n);
        std::vector<int> offsets(counts.size());
        for (size_t i = 1; i < offsets.size(); ++i) offsets[i] = offsets[i - 1] + n;
        return repeat(count, [&](long) {
            return MPI_Allgatherv(call.source, n, MPI_LONG, call.dest, counts.data(), offsets.data(), MPI_LONG, comm);
        });
    }

    MPI_Comm strided_ = MPI_COMM_NULL;
};

}  // namespace
}  // namespace shmem_mt

int main(int argc, char** argv) {
    using namespace shmem_mt;
    MpiJob job(kCollectivesName, parse_collectives_options(argc, argv, kCollectives), false);
    {
        const size_t bytes = (static_cast<size_t>(Collectives::needed_bytes(job)) + 4095) / 4096 * 4096;
        const std::unique_ptr<void, decltype(&std::free)> source(std::aligned_alloc(4096, bytes), &std::free);
        const std::unique_ptr<void, decltype(&std::free)> dest(std::aligned_alloc(4096, bytes), &std::free);
        std::memset(source.get(), 0, bytes);
        std::memset(dest.get(), 0, bytes);
        MpiCollectives library(job);
        Collectives(job, library, kCollectivesName, kCollectives, source.get(), dest.get()).run_all();
    }
    job.finish();
    return 0;
}
