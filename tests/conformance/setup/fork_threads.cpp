// Several threads of a PE fork at once: each child has its own copy of the globals, and the parent's stay what they
// are.
#include "check.h"
#include "tables.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace conformance;

namespace {

long global = 5;
constexpr int kThreads = 4;

int status_of(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

void* fork_many(void*) {
    for (int i = 0; i < 15; ++i) {
        const pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            global += 1;
            _exit(42);
        }
        CHECK_EQ(status_of(child), 42);
    }
    return nullptr;
}

void threads_fork_at_once() {
    subject = "fork in several threads";
    global = 8;
    pthread_t threads[kThreads];
    for (pthread_t& thread : threads) CHECK_EQ(pthread_create(&thread, nullptr, fork_many, nullptr), 0);
    for (pthread_t thread : threads) pthread_join(thread, nullptr);
    CHECK_EQ(*const_cast<volatile long*>(&global), 8);
}

}  // namespace

int main() {
    start("fork_threads");
    threads_fork_at_once();
    shmem_barrier_all();
    return finish();
}
