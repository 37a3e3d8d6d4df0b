// Processes that a PE starts: a forked child has its own copy of the globals, and of what it writes to the heap; it may
// not call the library, which says so, but may end as any process; system() and posix_spawn() work. All that with
// descriptors closed, too, that the program has not opened.
#include "check.h"
#include "tables.h"

#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <cstdio>
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

// Of the program, and registered before init: what they do before the fork is in the child's copy, and what they do in
// the child stays there.
long prepared, seen_in_child;
const int registered = pthread_atfork([] { ++prepared; }, [] { --prepared; }, [] { seen_in_child = prepared; });

// The child sees the globals as they were, and its writes stay its own.
void child_has_a_copy(const char* when) {
    subject = when;
    large[sizeof large - 1] = 3;
    global = 5;
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        const bool same = global == 5 && large[sizeof large - 1] == 3 && prepared == 1 && seen_in_child == 1;
        global = 6;
        memset(large, 9, sizeof large);
        _exit(same && global == 6 ? 42 : 43);
    }
    CHECK_EQ(status_of(child), 42);
    CHECK_EQ(*const_cast<volatile long*>(&global), 5);
    CHECK_EQ(*const_cast<volatile long*>(&prepared), 0);
    CHECK_EQ(*const_cast<volatile long*>(&seen_in_child), 0);
    CHECK_EQ(large[0], 0);
    CHECK_EQ(large[sizeof large - 1], 3);
    shmem_barrier_all();
    shmem_long_p(&global, 5 + pe, (pe + 1) % n_pes);  // the parent's globals are still symmetric
    shmem_barrier_all();
    CHECK_EQ(shmem_long_g(&global, (pe + 1) % n_pes), 5 + pe);
    shmem_barrier_all();
}

// What the child writes to symmetric memory, its own or a peer's, stays its own; where the program has closed the
// memory's descriptor, writing is a segmentation fault.
void child_heap_is_its_own(int status) {
    subject = "fork and the heap";
    auto* const heap = static_cast<long*>(shmem_malloc(3 * sizeof(long)));
    heap[0] = 10 + pe;
    heap[1] = 20 + pe;
    shmem_barrier_all();
    auto* const next = static_cast<long*>(shmem_ptr(heap, (pe + 1) % n_pes));  // null on another node
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        const rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        signal(SIGSEGV, SIG_DFL);  // of sanitizers, too
        const bool same = heap[0] == 10 + pe && (!next || next[1] == 20 + (pe + 1) % n_pes);
        if (!same)
            _exit(43);
        heap[0] = 98;
        if (next)
            next[1] = 99;
        _exit(heap[0] == 98 ? 42 : 43);
    }
    CHECK_EQ(status_of(child), status);
    shmem_barrier_all();
    CHECK_EQ(*const_cast<volatile long*>(heap), 10 + pe);
    CHECK_EQ(*const_cast<volatile long*>(heap + 1), 20 + pe);
    shmem_long_p(heap + 2, 30 + pe, (pe + 1) % n_pes);
    shmem_barrier_all();
    CHECK_EQ(heap[2], 30 + (pe + n_pes - 1) % n_pes);
    shmem_free(heap);
}

// Exit handlers and destructors give back what the PE has: in a child that is nothing, and no mistake.
pid_t parent;
void* held;
shmem_ctx_t held_ctx;
shmem_team_t held_team;

void give_back() {
    if (getpid() == parent)
        return;
    shmem_free(held);
    shmem_ctx_destroy(held_ctx);
    shmem_team_destroy(held_team);
    shmem_finalize();
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

// The status of a child that calls this and exits with 42; what it says.
int status_of_call(Call call, std::string* message) {
    int channel[2];
    fflush(nullptr);
    CHECK_EQ(pipe(channel), 0);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        dup2(channel[1], STDERR_FILENO);
        call();
        exit(42);
    }
    close(channel[1]);
    char part[256];
    for (ssize_t got; (got = read(channel[0], part, sizeof part)) > 0;) message->append(part, static_cast<size_t>(got));
    close(channel[0]);
    return status_of(child);
}

// A call in the child ends it with status 1 and this message, and does the job no harm.
void child_may_not_call(Call call, const char* name) {
    subject = name;
    std::string message;
    CHECK_EQ(status_of_call(call, &message), 1);
    const std::string right = "heddle [pe " + std::to_string(pe) + "] " + name +
                              ": called in a child that a PE forked: only the PE itself may, or a program that it "
                              "executes (called at ";
    if (message.compare(0, right.size(), right) != 0)
        fail(__FILE__, __LINE__, "the message is \"%s\", right would be \"%s\"", message.c_str(), right.c_str());
}

void child_exits() {
    subject = "exit";
    parent = getpid();
    held = shmem_malloc(8);
    CHECK_EQ(shmem_ctx_create(0, &held_ctx), 0);
    CHECK_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n_pes, nullptr, 0, &held_team), 0);
    CHECK_EQ(atexit(give_back), 0);
    std::string message;
    const int status = status_of_call([] {}, &message);
    if (status != 42 || !message.empty())
        fail(__FILE__, __LINE__, "the child ends with status %d and says \"%s\", right would be 42 and nothing", status,
             message.c_str());
    shmem_team_destroy(held_team);
    shmem_ctx_destroy(held_ctx);
    shmem_free(held);
}

// As daemons and frameworks do. A network needs its connections; on the node nothing does.
void close_descriptors() {
    constexpr int kMost = 100;
    for (int fd = 3; fd < kMost; ++fd) close(fd);
}

void reuse_descriptors() {
    while (open("/dev/null", O_RDONLY) < 20) {
    }
}

void on_the_node(const char* when) {
    child_has_a_copy(when);
    child_heap_is_its_own(1000 + SIGSEGV);
    shmem_team_t team;
    CHECK_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n_pes, nullptr, 0, &team), 0);
    shmem_team_sync(team);
    shmem_team_destroy(team);
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
    CHECK_EQ(registered, 0);
    child_has_a_copy("fork");
    child_heap_is_its_own(42);
    child_may_not_call(call_init, "shmem_init");
    child_may_not_call(call_p, "shmem_long_p");
    child_may_not_call(call_atomic, "shmem_long_atomic_inc");
    child_may_not_call(call_get, "shmem_getmem");
    child_may_not_call(call_malloc, "shmem_malloc");
    child_exits();
    other_programs();
    if (shmem_team_n_pes(SHMEM_TEAM_SHARED) == n_pes) {  // a network needs its descriptors
        close_descriptors();
        on_the_node("descriptors closed");
        reuse_descriptors();
        on_the_node("descriptors reused");
    }
    shmem_barrier_all();
    return finish();
}
