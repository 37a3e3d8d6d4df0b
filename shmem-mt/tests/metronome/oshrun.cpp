// oshrun -n N PROGRAM [ARGUMENT...]: N processes that share a world (world.hpp). The first that fails ends them all,
// and its status is oshrun's.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "world.hpp"

namespace {

pid_t start(int pe, const std::string& pes, const std::string& fd, char** program) {
    const pid_t parent = getpid(), child = fork();
    if (child != 0)
        return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    setenv("METRONOME_PE", std::to_string(pe).c_str(), 1);
    setenv("METRONOME_PES", pes.c_str(), 1);
    setenv("METRONOME_WORLD", fd.c_str(), 1);
    execv(program[0], program);
    std::perror(program[0]);
    _exit(127);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 2 && std::strcmp(argv[1], "--version") == 0)
        return std::puts("metronome 1") < 0;
    const int n = argc > 3 && std::strcmp(argv[1], "-n") == 0 ? std::atoi(argv[2]) : 0;
    if (n < 1 || n > metronome::kMostPes) {
        std::fprintf(stderr, "usage: oshrun -n N PROGRAM [ARGUMENT...], N from 1 to %d\n", metronome::kMostPes);
        return 2;
    }
    const int fd = memfd_create("metronome", 0);
    if (fd < 0 || ftruncate(fd, static_cast<off_t>(metronome::world_bytes(n))) != 0) {
        std::perror("metronome: the memory of the job");
        return 1;
    }
    void* const memory = mmap(nullptr, sizeof(metronome::World), PROT_READ, MAP_SHARED, fd, 0);
    const auto* const world = static_cast<const metronome::World*>(memory);
    std::vector<pid_t> pes;
    for (int pe = 0; pe < n; ++pe) pes.push_back(start(pe, std::to_string(n), std::to_string(fd), argv + 3));
    for (int left = n; left > 0; --left) {
        int status = 0;
        const pid_t ended = wait(&status);
        int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        for (int pe = 0; pe < n; ++pe) {
            const bool has_left = world->pes[pe].left.load(std::memory_order_acquire) != 0;  // pairs with leave
            if (pes[static_cast<size_t>(pe)] == ended && !has_left && code == 0)
                code = 1;
        }
        if (code != 0) {
            for (const pid_t pe : pes) kill(pe, SIGKILL);
            return code;
        }
    }
    return 0;
}
