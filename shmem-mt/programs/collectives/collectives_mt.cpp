// SHMEM-MT collectives-mt: seconds a collective (collectives.hpp) that all threads of every PE call and share
// (shmemx.h). The copy beside them is done by all threads, too.
#include <string>

#include "programs/collectives/collectives.hpp"
#include "programs/common/barriers.hpp"
#include "programs/common/job.hpp"
#include "programs/common/shmemx.hpp"

#if SHMEM_MT_HAVE_SHMEMX
#include "programs/collectives/strided_team.hpp"
#endif

namespace shmem_mt {
namespace {

#if SHMEM_MT_HAVE_SHMEMX
class ThreadedCollectives final : public CollectiveLibrary {
  public:
    // Collective.
    explicit ThreadedCollectives(Job& job) : threads_(job.threads()), teams_(job) {}

    std::string why_not(Collective) const override { return ""; }

    bool broadcast_fills_root() const override { return true; }

    void tell_right(Collective op, long token) override { shmem_mt::tell_right(op == Collective::kTeamSync, token); }
    bool is_told(long token) const override { return shmem_mt::is_told(token); }

    bool run(const Call& call, long count, int thread) override {
        const shmem_team_t team = teams_.named(call.team.name);
        const int all = threads_;
        const size_t n = call.nelems;
        auto* dest = static_cast<long*>(call.dest);
        const auto* source = static_cast<const long*>(call.source);
        auto* sums = static_cast<double*>(call.dest);
        const auto* values = static_cast<const double*>(call.source);
        switch (call.op) {
            case Collective::kTeamSync:
                return repeat(count, [=](long) { return shmemx_team_sync_mt(team, thread, all); });
            case Collective::kTeamBarrier:
                return repeat(count, [=](long) { return shmemx_team_barrier_mt(team, thread, all); });
            case Collective::kBroadcast:
                return repeat(count,
                              [=](long) { return shmemx_long_broadcast_mt(team, dest, source, n, 0, thread, all); });
            case Collective::kCollect:
                return repeat(count, [=](long) { return shmemx_long_collect_mt(team, dest, source, n, thread, all); });
            case Collective::kFcollect:
                return repeat(count, [=](long) { return shmemx_long_fcollect_mt(team, dest, source, n, thread, all); });
            case Collective::kAlltoall:
                return repeat(count, [=](long) { return shmemx_long_alltoall_mt(team, dest, source, n, thread, all); });
            case Collective::kSumReduce:
                return repeat(count,
                              [=](long) { return shmemx_double_sum_reduce_mt(team, sums, values, n, thread, all); });
            case Collective::kMaxReduce:
                return repeat(count,
                              [=](long) { return shmemx_long_max_reduce_mt(team, dest, source, n, thread, all); });
            default:
                return false;
        }
    }

  private:
    const int threads_;
    const Teams teams_;
};

void run_all(Job& job) {
    const size_t bytes = static_cast<size_t>(Collectives::needed_bytes(job));
    void* source = symmetric_alloc(bytes);
    void* dest = symmetric_alloc(bytes);
    ThreadedCollectives library(job);
    Collectives(job, library, kThreadedCollectivesName, kThreadedCollectives, source, dest).run_all();
}
#else
void run_all(Job& job) {
    job.skip(kThreadedCollectivesName, "everything", "the library has no collectives by all threads (shmemx.h)");
}
#endif

}  // namespace
}  // namespace shmem_mt

int main(int argc, char** argv) {
    using namespace shmem_mt;
    Job job(kThreadedCollectivesName, parse_collectives_options(argc, argv, kThreadedCollectives), Pes::kAny);
    if (job.thread_level_ok()) {
        run_all(job);
    } else {
        job.skip(kThreadedCollectivesName, "threads=" + std::to_string(job.threads()),
                 "the library does not give SHMEM_THREAD_MULTIPLE");
    }
    job.finish();
    return 0;
}
