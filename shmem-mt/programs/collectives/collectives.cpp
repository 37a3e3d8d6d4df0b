// SHMEM-MT collectives: seconds a blocking collective (collectives.hpp) of OpenSHMEM, through teams where the
// library has them, else through active sets.
#include "programs/collectives/collectives.hpp"

#include "programs/common/job.hpp"

#if SHMEM_MT_HAVE_TEAM_COLLECTIVES
#include "programs/collectives/teams.hpp"
#else
#include "programs/collectives/active_sets.hpp"
#endif

int main(int argc, char** argv) {
    using namespace shmem_mt;
    Job job(kCollectivesName, parse_collectives_options(argc, argv, kCollectives), Pes::kEven);
    {
        const size_t bytes = static_cast<size_t>(Collectives::needed_bytes(job));
        void* source = symmetric_alloc(bytes);
        void* dest = symmetric_alloc(bytes);
        ShmemCollectives library(job);
        Collectives(job, library, kCollectivesName, kCollectives, source, dest).run_all();
    }
    job.finish();
    return 0;
}
