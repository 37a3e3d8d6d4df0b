// Another thread may fork while init runs. The moments are made certain: this program has an allocator of its own, and
// forks whenever the library allocates during init. A child of any moment runs, has its own globals, and is no PE; the
// PE becomes what it was about to become.
#include "check.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>

using namespace conformance;

extern "C" void* __libc_malloc(size_t);  // glibc's own names
extern "C" void* __libc_calloc(size_t, size_t);

namespace {

constexpr int kMostMoments = 200;
bool in_init = false;
int moments = 0;
int statuses[kMostMoments];
long global = 5;

void fork_once() {
    if (!in_init || moments == kMostMoments)
        return;
    in_init = false;  // for what fork allocates
    fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
        global = 6;
        if (moments % 2 != 0)
            shmem_init();  // ends it with status 1
        _exit(42);
    }
    while (waitpid(child, &statuses[moments], 0) < 0) {
    }
    ++moments;
    in_init = true;
}

}  // namespace

extern "C" void* malloc(size_t bytes) {
    fork_once();
    return __libc_malloc(bytes);
}
extern "C" void* calloc(size_t count, size_t bytes) {
    fork_once();
    return __libc_calloc(count, bytes);
}

int main() {
    in_init = true;
    shmem_init();
    in_init = false;
    start("fork_in_init");
    CHECK(moments > 5);
    for (int moment = 0; moment < moments; ++moment) {
        const int right = moment % 2 != 0 ? 1 : 42;
        if (!WIFEXITED(statuses[moment]) || WEXITSTATUS(statuses[moment]) != right)
            fail(__FILE__, __LINE__, "the child of moment %d of %d ended with status %#x, right would be %#x", moment,
                 moments, static_cast<unsigned>(statuses[moment]), static_cast<unsigned>(right) << 8);
    }
    CHECK_EQ(*const_cast<volatile long*>(&global), 5);
    shmem_barrier_all();
    shmem_long_p(&global, 7 + pe, (pe + 1) % n_pes);
    shmem_barrier_all();
    CHECK_EQ(*const_cast<volatile long*>(&global), 7 + (pe + n_pes - 1) % n_pes);
    const int status = finish();
    shmem_finalize();  // the second of two
    return status;
}
