// SHMEM-MT cg: the NAS Parallel Benchmark CG (matrix.hpp), classes S to D. The rows of the matrix are divided among
// the PEs, and a PE's rows among its threads. One solve is the whole benchmark; a solve is right when its zeta is the
// published one to 1e-10. The rate counts all iterations of conjugate gradients; the time has one matrix product more
// in each step. The phase `wait` is thread 0 in blocking collectives and in waits for requests. Posting, polling, and
// waiting for the PE's other threads are `compute`. Thread 0 alone communicates. The figure of merit is NPB's "Mop/s
// total", over the whole solve.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "apps/cg/blocking.hpp"
#include "apps/cg/matrix.hpp"
#include "apps/cg/nonblocking.hpp"
#include "apps/cg/pipelined.hpp"
#include "apps/common/forms.hpp"
#include "apps/common/memory_need.hpp"
#include "apps/common/mini_app.hpp"
#include "apps/common/npb_class.hpp"
#include "apps/common/poll_tuning.hpp"

namespace shmem_mt {
namespace {

constexpr const char* kName = "cg";
constexpr double kTolerance = 1e-10;

// Forms that differ in the policy of progress alone share a solver.
class Cg final : public MiniApp {
  public:
    // Places the polls of a form that has some: as --poll-rows says, or where they turn out best. Collective.
    Cg(Job& job, const CgClass& problem, const Form& form, std::shared_ptr<CgSolver> solver)
        : MiniApp(job, form.name, {{"wait", true}}), problem_(problem), form_(form), solver_(std::move(solver)) {
        poll_rows_ = place_polls(
            job, kName, form, [&](long rows) { solver_->set_poll_rows(rows); },
            [&](int thread) { solver_->solve(thread, 1); });
        solver_->take_wait_seconds();
    }

    void describe(Json& params) const override { params.text("class", problem_.name); }

    void explain(Json& verdict) const override {
        verdict.text("zeta", exact(zeta_)).text("published_zeta", exact(problem_.zeta));
        verdict.number("tolerance", kTolerance).text("residual", exact(residual_)).integer("pieces", solver_->pieces());
    }

    double work() const override { return static_cast<double>(kCgIterations) * problem_.steps; }
    const char* unit() const override { return "iterations"; }

    // NPB's count of operations, by its own parameters.
    std::vector<Figure> figures() const override {
        const double row = static_cast<double>(problem_.nonzer * (problem_.nonzer + 1));
        const double operations =
            2.0 * problem_.steps * static_cast<double>(problem_.n) * (3 + row + kCgIterations * (5 + row) + 3);
        return {{"total", "Mop/s", "the whole solve", 1e-6 * operations, {}}};
    }

    // The PE's rows, and four whole vectors.
    double working_set() const override {
        return CgGenerator::entries(problem_) / job_.n_pes() * (sizeof(double) + sizeof(int32_t)) +
               4 * sizeof(double) * static_cast<double>(problem_.n);
    }

    void prepare() override {
        make_progress_as(form_);
        solver_->set_poll_rows(poll_rows_);
    }

    void run(int thread) override {
        solver_->solve(thread, problem_.steps);
        if (thread != 0)
            return;
        book(0, solver_->take_wait_seconds());
        zeta_ = solver_->zeta();
        residual_ = solver_->residual();
    }

    void check(Checker& checker) override {
        checker.compare_word(std::abs(zeta_ - problem_.zeta) <= kTolerance, 1);  // false when it is no number
    }

  private:
    static std::string exact(double value) {
        char text[40];
        std::snprintf(text, sizeof text, "%.17g", value);
        return text;
    }

    const CgClass& problem_;
    const Form form_;
    const std::shared_ptr<CgSolver> solver_;
    long poll_rows_ = 0;
    double zeta_ = 0, residual_ = 0;  // of the last solve
};

std::shared_ptr<CgSolver> make_solver(Job& job, const CgClass& problem, const SparseMatrix& matrix, Style style) {
#if SHMEM_MT_HAVE_PROGRESS
    if (style == Style::kPipelined)
        return std::make_shared<CgPipelined>(job, problem, matrix);
    if (style == Style::kNonblocking)
        return std::make_shared<CgNonblocking>(job, problem, matrix);
#endif
    (void)style;
    return std::make_shared<CgBlocking>(job, problem, matrix);
}

// Bytes on this PE, about. The generator is gone when the solvers are made. What grows by doubling may be half empty,
// and threads copy their rows from it.
double memory_need(const CgClass& problem, long rows, int threads, const std::vector<Form>& forms) {
    std::set<Style> styles;
    for (const Form& form : forms) styles.insert(form.style);
    const double entries = CgGenerator::entries(problem) * static_cast<double>(rows) / static_cast<double>(problem.n);
    const double vectors = 10.0 * sizeof(double) * static_cast<double>(problem.n);
    const double solver = sizeof(int32_t) * entries + vectors;
    const double matrix = (sizeof(int32_t) + sizeof(double)) * entries;
    const double made =
        CgGenerator::memory_need(problem) + 2 * matrix + threads * sizeof(double) * static_cast<double>(problem.n);
    return matrix + std::max(made, static_cast<double>(styles.size()) * solver);
}

void run_all(Job& job, const CgClass& problem) {
    const long rows = (problem.n + job.n_pes() - 1) / job.n_pes();
    const std::vector<Form> possible = possible_forms(job, kName, Ghosts::kNone);
    check_memory(job, memory_need(problem, rows, job.threads(), possible), "--class");
    const SparseMatrix matrix = CgGenerator(problem).rows(job.team(), job.me() * rows, rows);
    std::map<Style, std::shared_ptr<CgSolver>> solvers;
    std::vector<std::unique_ptr<MiniApp>> forms;
    for (const Form& form : possible) {
        std::shared_ptr<CgSolver>& solver = solvers[form.style];
        if (solver == nullptr)
            solver = make_solver(job, problem, matrix, form.style);
        forms.push_back(std::make_unique<Cg>(job, problem, form, solver));
    }
    run_forms(job, kName, forms);
}

}  // namespace
}  // namespace shmem_mt

int main(int argc, char** argv) {
    using namespace shmem_mt;
    Options options = parse_options(argc, argv, Options(), form_names(Ghosts::kNone));
    const CgClass& problem = class_of(argv[0], options, kCgClasses);
    options.size = problem.name;  // what is said to be too large for the machine
    return run_program(kName, options, [&](Job& job) {
        if (!skips_weak(job, kName))
            run_all(job, problem);
    });
}
