// Which thread writes first to the pages of the conjugate gradients, and where threads are bound. A fault of a page is
// counted for the thread that has it; pages are small ones here, so that there are many.
#include <sys/prctl.h>
#include <sys/resource.h>

#include <string>
#include <vector>

#include "apps/cg/blocking.hpp"
#include "apps/common/mini_app.hpp"
#include "apps/hpccg/problem.hpp"
#include "apps/krylov/forms.hpp"

namespace shmem_mt {
namespace {

constexpr long kPage = 4096;

std::vector<double> faults(Job& job) {
    std::vector<double> counts(static_cast<size_t>(job.threads()));
    job.team().run([&](int thread) {
        struct rusage usage;
        getrusage(RUSAGE_THREAD, &usage);
        counts[static_cast<size_t>(thread)] = static_cast<double>(usage.ru_minflt);
    });
    return counts;
}

std::vector<double> cpus(Job& job) {
    std::vector<double> counts(static_cast<size_t>(job.threads()));
    job.team().run([&](int thread) {
        cpu_set_t set;
        counts[static_cast<size_t>(thread)] = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
    });
    return counts;
}

template <class Vector>
double pages(const Vector& vector) {
    return static_cast<double>(vector.size() * sizeof(*vector.data()) / kPage);
}

std::vector<double> since(Job& job, const std::vector<double>& before) {
    std::vector<double> made = faults(job);
    for (size_t i = 0; i < made.size(); ++i) made[i] -= before[i];
    return made;
}

// The faults of making a matrix of cg and one solver of it; the random numbers, which thread 0 draws, left out.
std::vector<double> faults_of_cg(Job& job) {
    const CgClass& problem = kCgClasses[1];
    const CgGenerator generator(problem);
    const long rows = (problem.n + job.n_pes() - 1) / job.n_pes();
    const std::vector<double> before = faults(job);
    const SparseMatrix matrix = generator.rows(job.team(), job.me() * rows, rows);
    const CgBlocking solver(job, problem, matrix);
    return since(job, before);
}

void run(Job& job) {
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    const std::vector<double> of_cg = faults_of_cg(job);
    const HpccgProblem problem{24};
    const std::vector<long> firsts = problem.firsts(job.n_pes());
    const Range rows{firsts[static_cast<size_t>(job.me())], firsts[static_cast<size_t>(job.me()) + 1]};
    const std::vector<double> before = faults(job);
    SparseMatrix matrix = problem.matrix(job.team(), rows);
    const KrylovSystem system(job.team(), std::move(matrix), firsts, job.me());
    const Untouched<double> right_side = HpccgProblem::right_side(job.team(), system.matrix());
    KrylovHalo halo(job, system, {});
    KrylovBlocking solver(job, system, halo, false);
    const std::vector<double> made = since(job, before);
    const double all = pages(system.matrix().values) + pages(system.matrix().columns) + pages(system.matrix().starts) +
                       5 * pages(right_side);  // x, r, p and q
    if (job.me() != 0)
        return;
    Json line;
    line.text("event", "placed").numbers("faults", made).number("pages", all).numbers("cpus", cpus(job));
    line.numbers("cg", of_cg).boolean("is_bound", job.threads_are_bound()).print();
}

}  // namespace
}  // namespace shmem_mt

int main(int argc, char** argv) {
    using namespace shmem_mt;
    return run_program("placement", parse_options(argc, argv, Options(), {"placement"}), [](Job& job) { run(job); });
}
