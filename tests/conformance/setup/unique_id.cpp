// Jobs by a unique id beside oshrun: each PE, before it is one, makes an id and two processes, which become a job of two
// PEs by it, put, and finalize. Missing partners and wrong arguments are the subject of tests/launcher.
#include "check.h"

#include <shmemx.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstdlib>

using namespace conformance;

namespace {

constexpr int kPes = 2;
long word;

// A child's whole life.
[[noreturn]] void be_pe(int me, int pipe) {
    shmemx_uniqueid_t id;
    int provided = -1;
    CHECK_EQ(read(pipe, &id, sizeof id), static_cast<ssize_t>(sizeof id));
    if (me == 0)
        CHECK_EQ(shmemx_init_uniqueid(&id, me, kPes), 0);
    else
        CHECK_EQ(shmemx_init_thread_uniqueid(&id, me, kPes, SHMEM_THREAD_MULTIPLE, &provided), 0);
    CHECK_EQ(provided, me == 0 ? -1 : SHMEM_THREAD_MULTIPLE);
    CHECK_EQ(shmem_my_pe(), me);
    CHECK_EQ(shmem_n_pes(), kPes);
    shmem_long_p(&word, 17 + me, 1 - me);
    shmem_barrier_all();
    CHECK_EQ(word, 17 + 1 - me);
    CHECK_EQ(shmem_ptr(&word, 1 - me) != nullptr, 1);
    CHECK(shmemx_init_uniqueid(&id, 1 - me, kPes) != 0);  // another PE than it is
    shmem_finalize();
    exit(0);
}

}  // namespace

int main() {
    subject = "a job by unique id";
    int pipes[kPes][2];
    pid_t children[kPes];
    shmemx_uniqueid_t id, other;
    for (int child = 0; child < kPes; ++child) {
        CHECK_EQ(pipe(pipes[child]), 0);
        children[child] = fork();
        if (children[child] == 0)
            be_pe(child, pipes[child][0]);
        if (child == 0)  // the second child has a copy of what serves the job
            CHECK_EQ(shmemx_get_uniqueid(&id), 0);
    }
    CHECK_EQ(shmemx_get_uniqueid(&other), 0);
    CHECK(memcmp(&id, &other, sizeof id) != 0);
    for (const auto& pipe : pipes) CHECK_EQ(write(pipe[1], &id, sizeof id), static_cast<ssize_t>(sizeof id));
    for (const pid_t child : children) {
        int status = -1;
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK_EQ(status, 0);
    }
    start("unique_id");
    return finish();
}
