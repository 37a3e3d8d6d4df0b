// The serial runs whose results the mini-apps know by heart (apps/hpccg/known_norms.hpp, apps/minimd/known_runs.hpp).
//
//     known_results hpccg EDGE         makes the run, and prints it as the table has it
//     known_results minimd CELLS STEPS
//
// Exit status 0: the table has that run, and all its numbers are those of the run; 1: not so.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "apps/hpccg/known_norms.hpp"
#include "apps/hpccg/problem.hpp"
#include "apps/minimd/known_runs.hpp"
#include "apps/minimd/reference.hpp"

namespace {

using namespace shmem_mt;

void print(const std::vector<double>& numbers) {
    for (size_t i = 0; i < numbers.size(); ++i) std::printf("%.17g,%s", numbers[i], i % 5 == 4 ? "\n" : " ");
    std::printf("\n");
}

bool hpccg(long edge) {
    const std::vector<double> norms = HpccgReference(HpccgProblem{edge}).norms(kHpccgIterations);
    print(norms);
    return known_norms(edge) == norms;
}

bool minimd(long cells, int steps) {
    const MdHistory run = MdReference(MdModel(cells)).run(steps);
    std::printf("%llu\n", static_cast<unsigned long long>(run.state));
    for (const MdThermo& at : run.thermo)
        std::printf("{%.17g, %.17g, %.17g, %.17g, %.17g},\n", at.temperature, at.pressure, at.potential, at.energy,
                    at.conserved);
    const MdHistory known = known_run(cells, steps);
    return known.state == run.state && known.thermo.size() == run.thermo.size() &&
           std::memcmp(known.thermo.data(), run.thermo.data(), sizeof(MdThermo) * run.thermo.size()) == 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 3 && std::strcmp(argv[1], "hpccg") == 0)
        return hpccg(std::atol(argv[2])) ? 0 : 1;
    if (argc == 4 && std::strcmp(argv[1], "minimd") == 0)
        return minimd(std::atol(argv[2]), std::atoi(argv[3])) ? 0 : 1;
    return 2;
}
