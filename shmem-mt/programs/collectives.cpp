// SHMEM-MT collectives: seconds a blocking collective (collectives.hpp) of OpenSHMEM, through teams where the
// library has them, else through active sets.
#include "collectives.hpp"

#include "job.hpp"

#ifndef SHMEM_MT_HAVE_TEAM_COLLECTIVES
#if SHMEM_MAJOR_VERSION > 1 || (SHMEM_MAJOR_VERSION == 1 && SHMEM_MINOR_VERSION >= 5)
#define SHMEM_MT_HAVE_TEAM_COLLECTIVES 1
#else
#define SHMEM_MT_HAVE_TEAM_COLLECTIVES 0
#endif
#endif
#if SHMEM_MT_HAVE_TEAM_COLLECTIVES
#include "team_collectives.hpp"
#else
#include "active_set_collectives.hpp"
#endif

int main(int argc, char** argv) {
    using namespace shmem_mt;
    Job job(kCollectivesName, parse_collectives_options(argc, argv, kCollectives));
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
