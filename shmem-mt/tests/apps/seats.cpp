// Which CPUs the threads of PEs get (programs/common/binding.hpp), of made-up machines. Exit status 0: the right ones.
#include "programs/common/binding.hpp"

#include <cstdio>

namespace {

using namespace shmem_mt;

Cores cores(long host, int first, int end) {
    Cores one;
    one.host = host;
    CPU_ZERO(&one.cpus);
    for (int cpu = first; cpu < end; ++cpu) CPU_SET(cpu, &one.cpus);
    return one;
}

bool has(const Seat& seat, long index, long sharers) {
    return seat.index == index && seat.sharers == sharers;
}

// 2 packages of 2 cores with 2 hardware threads: siblings are 4 apart.
std::vector<CpuPlace> eight() {
    return {{0, 0, 0}, {1, 0, 0}, {2, 0, 1}, {3, 0, 1}, {4, 1, 0}, {5, 1, 0}, {6, 1, 1}, {7, 1, 1}};
}

bool check(bool holds, const char* what) {
    if (!holds)
        std::printf("wrong: %s\n", what);
    return holds;
}

}  // namespace

int main() {
    using Cpus = std::vector<int>;
    const auto same = seats_of({cores(1, 0, 8), cores(1, 0, 8), cores(2, 0, 8)});
    const auto apart = seats_of({cores(1, 0, 4), cores(1, 4, 8)});
    const auto partly = seats_of({cores(1, 0, 5), cores(1, 4, 8), cores(1, 9, 9)});
    bool ok =
        check(has(same[0], 0, 2) && has(same[1], 1, 2) && has(same[2], 0, 1), "PEs with the same CPUs share them");
    ok &= check(has(apart[0], 0, 1) && has(apart[1], 0, 1), "PEs with CPUs of their own");
    ok &= check(partly[0].sharers == 0 && partly[1].sharers == 0 && partly[2].sharers == 0, "none where CPUs overlap");
    ok &= check(cpus_for(eight(), {0, 1}, 4) == Cpus{0, 1, 2, 3}, "cores before second hardware threads");
    ok &= check(cpus_for(eight(), {1, 2}, 2) == Cpus{2, 3}, "the second PE has the second package");
    ok &= check(cpus_for(eight(), {0, 2}, 5).empty(), "none where there are too few");
    ok &= check(cpus_for(eight(), {0, 0}, 1).empty(), "none where PEs share some CPUs only");
    ok &= check(cpus_for({{0, 0, 0}, {1, 1, 0}, {2, 0, 0}}, {0, 1}, 2) == Cpus{0, 2}, "siblings side by side");
    ok &= check(place_in_list("3,67", 67) == 1 && place_in_list("3,67", 3) == 0, "a list of CPUs");
    ok &= check(place_in_list("0-1", 1) == 1 && place_in_list("4-5,8-9", 9) == 3, "ranges of CPUs");
    return ok ? 0 : 1;
}
