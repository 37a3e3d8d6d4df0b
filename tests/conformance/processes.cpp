// Processes that a PE starts: a forked child has its own copy of the globals and may not call the library, which says
// so; system() and posix_spawn() work.
#include "check.h"
#include "tables.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstdlib>
#include <string>

using namespace conformance;

extern char** environ;

namespace {

long global = 5;
char large[300000];

int status_of(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

// The child sees the globals as they were, and its writes stay its own.
void child_has_a_copy() {
    subject = "fork";
    large[sizeof large - 1] = 3;
    global = 5;
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        const bool same = global == 5 && large[sizeof large - 1] == 3;
        global = 6;
        memset(large, 9, sizeof large);
        _exit(same && global == 6 ? 42 : 43);
    }
    CHECK_EQ(status_of(child), 42);
    CHECK_EQ(*const_cast<volatile long*>(&global), 5);
    CHECK_EQ(large[0], 0);
    CHECK_EQ(large[sizeof large - 1], 3);
    shmem_barrier_all();
    shmem_long_p(&global, 5 + pe, (pe + 1) % n_pes);  // the parent's globals are still symmetric
    shmem_barrier_all();
    CHECK_EQ(shmem_long_g(&global, (pe + 1) % n_pes), 5 + pe);
    shmem_barrier_all();
}

using Call = void (*)();
void call_init() {
    shmem_init();
}
void call_p() {
    shmem_long_p(&global, 1, 0);
}
void call_atomic() {
    shmem_long_atomic_inc(&global, 0);
}
void call_get() {
    char got[8];
    shmem_getmem(got, large, 8, 0);
}
void call_malloc() {
    shmem_malloc(8);
}
void call_finalize() {
    shmem_finalize();
}

// A call in the child ends it with status 1 and this message, and does the job no harm.
void child_may_not_call(Call call, const char* name) {
    subject = name;
    int channel[2];
    CHECK_EQ(pipe(channel), 0);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        dup2(channel[1], STDERR_FILENO);
        call();
        _exit(0);
    }
    close(channel[1]);
    std::string message;
    char part[256];
    for (ssize_t got; (got = read(channel[0], part, sizeof part)) > 0;) message.append(part, static_cast<size_t>(got));
    close(channel[0]);
    CHECK_EQ(status_of(child), 1);
    const std::string right = "heddle [pe " + std::to_string(pe) + "] " + name +
                              ": called in a child that a PE forked: only the PE itself may, or a program that it "
                              "executes (called at ";
    if (message.compare(0, right.size(), right) != 0)
        fail(__FILE__, __LINE__, "the message is \"%s\", right would be \"%s\"", message.c_str(), right.c_str());
}

void other_programs() {
    subject = "system, posix_spawn";
    global = 77;
    CHECK_EQ(system("exit 3"), 3 << 8);
    const char* arguments[] = {"sh", "-c", "exit 4", nullptr};
    pid_t child = 0;
    CHECK_EQ(posix_spawn(&child, "/bin/sh", nullptr, nullptr, const_cast<char**>(arguments), environ), 0);
    CHECK_EQ(status_of(child), 4);
    CHECK_EQ(*const_cast<volatile long*>(&global), 77);
}

}  // namespace

int main() {
    start("processes");
    child_has_a_copy();
    child_may_not_call(call_init, "shmem_init");
    child_may_not_call(call_p, "shmem_long_p");
    child_may_not_call(call_atomic, "shmem_long_atomic_inc");
    child_may_not_call(call_get, "shmem_getmem");
    child_may_not_call(call_malloc, "shmem_malloc");
    child_may_not_call(call_finalize, "shmem_finalize");
    other_programs();
    shmem_barrier_all();
    return finish();
}
