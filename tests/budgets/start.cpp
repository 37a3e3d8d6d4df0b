// What init computes for itself in a job of many PEs, without the PEs: the numbers of the nodes and the predefined teams
// with their spans. start.py counts the instructions of compute() with callgrind.
//
//     budgets_start PES SHAPE     SHAPE: blocks (128 PEs a node), cyclic (128 PEs a node, in turns), alone (1 PE a node)
//
// Prints the seconds of compute(), of the thread's own time.
#include "bootstrap/node_numbers.h"
#include "team/team.h"

#include <sys/mman.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

namespace {

constexpr int kPerNode = 128;

double thread_seconds() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

int leader_of(int pe, int n_pes, const char* shape) {
    const int n_nodes = (n_pes + kPerNode - 1) / kPerNode;
    return strcmp(shape, "blocks") == 0 ? pe / kPerNode * kPerNode : strcmp(shape, "cyclic") == 0 ? pe % n_nodes : pe;
}

}  // namespace

// The name by which callgrind knows it.
extern "C" __attribute__((noinline)) void compute(const std::vector<int>& leaders, int* nodes) {
    const int n_pes = static_cast<int>(leaders.size());
    heddle::bootstrap::number_nodes(n_pes, [&](int pe) { return leaders[static_cast<size_t>(pe)]; }, 0, nodes);
    heddle::team::start_teams(0, n_pes, nodes);
}

int main(int argc, char** argv) {
    const int n_pes = argc == 3 ? atoi(argv[1]) : 0;
    if (n_pes <= 1) {
        fprintf(stderr, "budgets_start PES SHAPE\n");
        return 2;
    }
    std::vector<int> leaders, nodes(static_cast<size_t>(n_pes));
    for (int pe = 0; pe < n_pes; ++pe) leaders.push_back(leader_of(pe, n_pes, argv[2]));
    // The segments of the predefined teams lie in front, and no other is touched. valgrind has no room for all.
    constexpr size_t kMostBytes = size_t{16} << 30;
    void* const segments = mmap(nullptr, std::min(heddle::team::team_segments_bytes(kPerNode), kMostBytes),
                                PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (segments == MAP_FAILED)
        return 77;
    heddle::team::start_team_segments(static_cast<char*>(segments), 0, kPerNode, false, true, nullptr);
    const double begin = thread_seconds();
    compute(leaders, nodes.data());
    printf("%.3f s for %d PEs, %s\n", thread_seconds() - begin, n_pes, argv[2]);
    return 0;
}
