// SHMEM-MT cg: the NAS Parallel Benchmark CG (cg_matrix.hpp), classes S, W and A, with the rows of the matrix over the
// PEs and the threads of each. One solve is the whole benchmark; it is right when its zeta is the published one to
// 1e-10. A rate counts all iterations of conjugate gradients; the time has one matrix product more in each step.
//   total     seconds a solve, of the slowest PE
//   wait      of these, those that thread 0 spent in blocking collectives and waiting for requests; mean of the PEs
//   compute   the rest: arithmetic, posting, polling, and waiting for the PE's other threads
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cg_blocking.hpp"
#include "cg_matrix.hpp"
#include "cg_nonblocking.hpp"
#include "cg_pipelined.hpp"
#include "forms.hpp"
#include "job.hpp"
#include "measure.hpp"
#include "run_together.hpp"

namespace shmem_mt {
namespace {

constexpr const char* kName = "cg";
constexpr double kTolerance = 1e-10;

// One form, and what its solves have shown. Forms that differ in who makes progress alone share a solver.
class Cg {
  public:
    Cg(Job& job, const CgClass& problem, const Form& form, std::shared_ptr<CgSolver> solver)
        : job_(job), problem_(problem), form_(form), solver_(std::move(solver)) {}

    const Form& form() const { return form_; }
    long pieces() const { return solver_->pieces(); }
    double zeta() const { return zeta_; }          // of the last solve
    double residual() const { return residual_; }  // of the last solve

    // Places the polls of a form that has some: as --poll-rows says, or where they turn out best. Collective.
    void place_polls() {
        if (form_.policy == nullptr || std::string(form_.policy) != "manual")
            return;
        poll_rows_ = job_.options().poll_rows;
        if (poll_rows_ == 0)
            poll_rows_ = best_poll_rows();
        Json tuned;
        tuned.text("event", "tuned").text("benchmark", kName).text("form", form_.name).integer("poll_rows", poll_rows_);
        if (job_.me() == 0)
            tuned.print();
    }

    // Collective.
    Agreed validate() {
        const Report report = sample(1);
        Checker checker(job_.options().fault);
        checker.compare_word(report.ok, 1);
        return agree_verdict(job_, checker);
    }

    // `count` solves. Collective.
    Report sample(long count) {
        make_progress_as(form_);
        solver_->set_poll_rows(poll_rows_);
        bool ok = true;
        const Report report = run_together(
            job_,
            [&](int thread) {
                for (long i = 0; i < count; ++i) {
                    solver_->solve(thread, problem_.steps);
                    if (thread == 0)
                        ok = ok &&
                             std::abs(solver_->zeta() - problem_.zeta) <= kTolerance;  // false when it is no number
                }
            },
            [&] {
                shmem_barrier_all();
                return ok;
            });
        zeta_ = solver_->zeta();
        residual_ = solver_->residual();
        Report mine;
        mine.seconds = solver_->take_wait_seconds() / static_cast<double>(count);
        waits_.push_back(job_.agree(mine).mean_seconds);
        return report;
    }

    // Of the last `count` samples, seconds a solve.
    std::vector<double> last_waits(size_t count) const {
        return {waits_.end() - static_cast<long>(count), waits_.end()};
    }

  private:
    long best_poll_rows() {
        make_progress_as(form_);
        long best = 0;
        double shortest = 0;
        for (long rows = 8; rows <= 4096; rows *= 4) {
            solver_->set_poll_rows(rows);
            const double seconds = step_seconds();
            if (best == 0 || seconds < shortest) {
                best = rows;
                shortest = seconds;
            }
        }
        solver_->take_wait_seconds();
        return best;
    }

    // The best of three.
    double step_seconds() {
        double best = 0;
        for (int i = 0; i < 3; ++i) {
            const Report report =
                run_together(job_, [&](int thread) { solver_->solve(thread, 1); }, [] { return true; });
            const double seconds = job_.agree(report).max_seconds;
            best = i == 0 ? seconds : std::min(best, seconds);
        }
        return best;
    }

    Job& job_;
    const CgClass& problem_;
    const Form form_;
    const std::shared_ptr<CgSolver> solver_;
    long poll_rows_ = 0;
    double zeta_ = 0, residual_ = 0;
    std::vector<double> waits_;  // one a sample
};

void print_verdict(Job& job, const CgClass& problem, const Cg& cg, bool pass) {
    if (job.me() != 0)
        return;
    char zeta[40], wanted[40], residual[40];
    std::snprintf(zeta, sizeof zeta, "%.17g", cg.zeta());
    std::snprintf(residual, sizeof residual, "%.17g", cg.residual());
    std::snprintf(wanted, sizeof wanted, "%.14g", problem.zeta);
    Json verdict;
    verdict.text("event", "verdict").text("benchmark", kName).text("form", cg.form().name).text("class", problem.name);
    verdict.text("verdict", pass ? "pass" : "fail").text("zeta", zeta).text("published_zeta", wanted);
    verdict.integer("pieces", cg.pieces()).number("tolerance", kTolerance).text("residual", residual).print();
}

void print_form(Job& job, const CgClass& problem, const Cg& cg, const Samples& samples, const Agreed& verdict) {
    print_verdict(job, problem, cg, verdict.ok && samples.ok);
    const Agreed* const shown = job.options().validate ? &verdict : nullptr;
    const auto params = [&](const char* part) {
        Json json = job.params(cg.form().name);
        return json.text("class", problem.name).text("part", part);
    };
    const double iterations = static_cast<double>(kCgIterations) * problem.steps;
    const std::vector<double> waits = cg.last_waits(samples.seconds.size());
    std::vector<double> rates, totals, rests;
    for (size_t i = 0; i < waits.size(); ++i) {
        totals.push_back(samples.seconds[i] / static_cast<double>(samples.count));
        rates.push_back(iterations / totals.back());
        rests.push_back(totals.back() - waits[i]);
    }
    print_point(job, kName, params("total"), "rate", "iterations/s", rates, samples, shown);
    print_point(job, kName, params("total"), "time", "s", totals, samples, shown);
    print_point(job, kName, params("compute"), "time", "s", rests, samples, shown);
    print_point(job, kName, params("wait"), "time", "s", waits, samples, shown);
}

std::shared_ptr<CgSolver> make_solver(Job& job, const CgClass& problem, const CgMatrix& matrix, Style style) {
#if SHMEM_MT_HAVE_PROGRESS
    if (style == Style::kPipelined)
        return std::make_shared<CgPipelined>(job, problem, matrix);
    if (style == Style::kNonblocking)
        return std::make_shared<CgNonblocking>(job, problem, matrix);
#endif
    (void)style;
    return std::make_shared<CgBlocking>(job, problem, matrix);
}

// All forms, interleaved.
void run_all(Job& job, const CgClass& problem) {
    const long rows = (problem.n + job.n_pes() - 1) / job.n_pes();
    const CgMatrix matrix = CgGenerator(problem).rows(job.me() * rows, rows);
    std::map<Style, std::shared_ptr<CgSolver>> solvers;
    std::vector<std::unique_ptr<Cg>> forms;
    std::vector<Agreed> verdicts;
    std::vector<Body> bodies;
    for (const Form& form : possible_forms(job, kName)) {
        std::shared_ptr<CgSolver>& solver = solvers[form.style];
        if (solver == nullptr)
            solver = make_solver(job, problem, matrix, form.style);
        forms.push_back(std::make_unique<Cg>(job, problem, form, solver));
        Cg* const cg = forms.back().get();
        cg->place_polls();
        verdicts.push_back(job.options().validate ? cg->validate() : Agreed{});
        bodies.push_back([cg](long count) { return cg->sample(count); });
    }
    const std::vector<Samples> samples = measure(job, bodies);
    for (size_t i = 0; i < forms.size(); ++i) print_form(job, problem, *forms[i], samples[i], verdicts[i]);
}

}  // namespace
}  // namespace shmem_mt

int main(int argc, char** argv) {
    using namespace shmem_mt;
    const Options options = parse_options(argc, argv, Options(), form_names());
    const CgClass* const problem = cg_class(options.problem);
    if (problem == nullptr)
        usage_error(argv[0], "--class: there is no class " + options.problem + "; there are S, W, A");
    Job job(kName, options, Pes::kAny);
    if (job.thread_level_ok())
        run_all(job, *problem);
    else
        job.skip(kName, "threads=" + std::to_string(job.threads()), "the library does not give SHMEM_THREAD_MULTIPLE");
    job.finish();
    return 0;
}
