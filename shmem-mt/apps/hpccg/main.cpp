// SHMEM-MT hpccg: conjugate gradients on a 27-point grid, after the mini-application HPCCG (problem.hpp). --size counts
// the edge of the whole chimney: N x N points on each of 4 N planes, which are spread over the PEs; with --scale weak N
// planes for each thread of each PE. A solve is 50
// iterations; it is right when |r| has gone the way that it goes in a serial run, r is what the solution leaves of the
// right side, and the solution is as near to 1 as the last |r| says. Of thread 0's time `exchange` is packing, sending
// and waiting for the planes of neighbours, `sum` the sums over all PEs, `product` the products with the matrix,
// `vectors` inner products and updates; `compute` is the rest: waiting for the PE's other threads.
//
// The figures of merit are those of HPCCG's "MFLOPS Summary" and its "SPARSEMV MFLOPS W OVERHEAD", counted as there: of
// an iteration 2 for each entry of the matrix, 4 a row for inner products, 6 a row for updates, whatever a form
// computes beyond. Inner products and updates are one figure, as most of them are one loop here. "SPARSEMV matrix" HPCCG
// does not print: the bytes of values and columns that products read, to stand beside the memory's own figure.
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "apps/common/forms.hpp"
#include "apps/common/largest.hpp"
#include "apps/common/memory_need.hpp"
#include "apps/common/mini_app.hpp"
#include "apps/common/poll_tuning.hpp"
#include "apps/common/problem_size.hpp"
#include "apps/hpccg/known_norms.hpp"
#include "apps/hpccg/problem.hpp"
#include "apps/krylov/forms.hpp"

namespace shmem_mt {
namespace {

constexpr const char* kName = "hpccg";

// How far a norm may be from the serial one, as a part of itself and a hundredth of the first one: rounding moves
// the pipelined form by up to 1e-13, the others by 1e-14.
constexpr double kTolerance = 1e-12, kOfFirst = 0.01;

class Hpccg final : public MiniApp {
  public:
    // Collective.
    Hpccg(Job& job, const HpccgProblem& problem, const KrylovForm& form, KrylovSolver& solver,
          const Untouched<double>& right_side, const double* serial_norms)
        : MiniApp(job, form.name, {{"exchange", true}, {"sum", true}, {"product", false}, {"vectors", false}}),
          problem_(problem),
          form_(form),
          solver_(solver),
          right_side_(right_side),
          serial_norms_(serial_norms) {
        poll_rows_ = place_polls(
            job, kName, form, [&](long rows) { solver_.set_poll_rows(rows); },
            [&](int thread) { solver_.solve(thread, right_side_.data(), kTuningIterations); });
        solver_.take_seconds();
    }

    void describe(Json& params) const override {
        params.integer("edge", problem_.edge);
        describe_sync(form_.sync, params);
    }

    void explain(Json& verdict) const override {
        verdict.integer("rows", problem_.rows()).number("residual", solver_.norms().back());
        verdict.number("deviation", deviation_)
            .number("tolerance", kTolerance)
            .number("drift", drift_)
            .number("error", error_);
        verdict.number("product_imbalance", solver_.imbalance()).integer("exchange_messages", solver_.messages());
    }

    // Iterations over more rows are more work: where the problem grows, rows are counted.
    double work() const override {
        return kHpccgIterations * (is_weak(job_.options()) ? static_cast<double>(problem_.rows()) : 1.0);
    }
    const char* unit() const override { return is_weak(job_.options()) ? "row-iterations" : "iterations"; }

    std::vector<Figure> figures() const override {
        const double product = 2e-6 * kHpccgIterations * problem_.entries();
        const double vectors = 10e-6 * kHpccgIterations * static_cast<double>(problem_.rows());
        const double read = (sizeof(double) + sizeof(int32_t)) * kHpccgIterations * problem_.entries();
        return {{"Total", "MFLOPS", "the whole solve", product + vectors, {}},
                {"DDOT and WAXPBY", "MFLOPS", "inner products with their sums, and updates", vectors, {kSum, kVectors}},
                {"SPARSEMV", "MFLOPS", "products without the exchange", product, {kProduct}},
                {"SPARSEMV W OVERHEAD", "MFLOPS", "products and the exchange", product, {kProduct, kExchange}},
                {"SPARSEMV matrix", "bytes/s", "products without the exchange", read, {kProduct}}};
    }

    double working_set() const override { return solver_.working_set(); }

    void prepare() override {
        make_progress_as(form_);
        solver_.set_sync(form_.sync);
        solver_.set_poll_rows(poll_rows_);
    }

    void run(int thread) override {
        solver_.solve(thread, right_side_.data(), kHpccgIterations);
        if (thread != 0)
            return;
        const KrylovSeconds spent = solver_.take_seconds();
        book(kExchange, spent.exchange);
        book(kSum, spent.sum);
        book(kProduct, spent.product);
        book(kVectors, spent.vectors);
    }

    // Comparisons are false for what is no number.
    void check(Checker& checker) override {
        const std::vector<double>& norms = solver_.norms();
        deviation_ = error_ = 0;
        for (size_t i = 0; i < norms.size(); ++i) {
            const double yardstick = serial_norms_[i] + kOfFirst * serial_norms_[0];
            const double deviation = std::abs(norms[i] - serial_norms_[i]) / yardstick;
            checker.compare_word(deviation <= kTolerance, 1);
            keep_worse(&deviation_, deviation);
        }
        const double most = norms.back() + kTolerance * kOfFirst * norms.front();
        for (const double x : solver_.x()) {
            checker.compare_word(std::abs(x - 1) <= most, 1);
            keep_worse(&error_, std::abs(x - 1));
        }
        drift_ = solver_.drift(right_side_.data()) / solver_.norms().front();
        checker.compare_word(drift_ <= most_drift(form_), 1);
        error_ = largest_of(job_, error_);
    }

  private:
    enum : size_t { kExchange, kSum, kProduct, kVectors };
    static constexpr int kTuningIterations = 5;

    const HpccgProblem& problem_;
    const KrylovForm form_;
    KrylovSolver& solver_;
    const Untouched<double>& right_side_;
    const double* const serial_norms_;
    long poll_rows_ = 0;
    double deviation_ = 0, error_ = 0, drift_ = 0;  // the largest of the last solve
};

// Empty where they are not known.
std::vector<double> known_norms_of(const HpccgProblem& problem) {
    return problem.height == HpccgProblem::kHeight ? known_norms(problem.edge) : std::vector<double>();
}

// Those of a serial run, on all PEs: PE 0 has found them, where they are not known. Collective.
const double* serial_norms(Job& job, const HpccgProblem& problem) {
    constexpr size_t kBytes = (kHpccgIterations + 1) * sizeof(double);
    auto* const norms = static_cast<double*>(symmetric_alloc(kBytes));
    if (job.me() == 0 && job.options().validate) {
        std::vector<double> found = known_norms_of(problem);
        if (found.empty())
            found = HpccgReference(problem).norms(kHpccgIterations);
        for (int pe = 0; pe < job.n_pes(); ++pe) shmem_putmem(norms, found.data(), kBytes, pe);
    }
    job.barrier();
    return norms;
}

void run_all(Job& job, const HpccgProblem& problem) {
    const std::vector<long> firsts = problem.firsts(job.n_pes());
    const Range rows{firsts[static_cast<size_t>(job.me())], firsts[static_cast<size_t>(job.me()) + 1]};
    constexpr double kBytesOfRow = 27 * (sizeof(double) + sizeof(int32_t)) + 16 * sizeof(double);
    const bool reference_here = job.me() == 0 && job.options().validate && known_norms_of(problem).empty();
    check_memory(
        job,
        kBytesOfRow * static_cast<double>(rows.length()) + (reference_here ? HpccgReference::memory_need(problem) : 0),
        "--size");
    SparseMatrix matrix = problem.matrix(job.team(), rows);
    const Untouched<double> right_side = HpccgProblem::right_side(job.team(), matrix);
    const KrylovSystem system(job.team(), std::move(matrix), firsts, job.me());
    const double* const norms = serial_norms(job, problem);
    const std::vector<Sync> syncs = krylov_syncs(job, kName);
    KrylovHalo halo(job, system, syncs);
    KrylovSolvers solvers(job, system, halo);
    std::vector<std::unique_ptr<MiniApp>> forms;
    for (const KrylovForm& form : krylov_forms(job, kName, syncs))
        forms.push_back(std::make_unique<Hpccg>(job, problem, form, solvers.of(form.style), right_side, norms));
    run_forms(job, kName, forms);
}

// N x N x N points for each thread of each PE where the problem grows with them. Ends the program where that is too much.
HpccgProblem problem_of(const Job& job, long edge) {
    if (!is_weak(job.options()))
        return {edge};
    constexpr long kMost =
        HpccgProblem::kHeight * HpccgProblem::kLargestEdge * HpccgProblem::kLargestEdge * HpccgProblem::kLargestEdge;
    if (workers_of(job) > kMost / (edge * edge * edge))
        fail("--scale weak: --size " + job.options().size + " for each of " + std::to_string(workers_of(job)) +
             " threads is more than " + std::to_string(kMost) + " points: choose less");
    return {edge, workers_of(job)};
}

long edge_of(const char* program, const Options& options) {
    const long edge = size_of(options, {12, 60, 120, 200});
    if (edge > HpccgProblem::kLargestEdge)
        usage_error(program, "--size " + options.size + ": the edge of the chimney is at most " +
                                 std::to_string(HpccgProblem::kLargestEdge) + " points");
    return edge;
}

}  // namespace
}  // namespace shmem_mt

int main(int argc, char** argv) {
    using namespace shmem_mt;
    const Options options = parse_options(argc, argv, Options(), form_names(Ghosts::kExchanged));
    const long edge = edge_of(argv[0], options);
    return run_program(kName, options, [&](Job& job) { run_all(job, problem_of(job, edge)); });
}
