// SHMEM-MT minife: finite elements on a cube, after the mini-application MiniFE (M. Heroux and others: Improving
// performance via mini-applications, Sandia report SAND2009-5574): heat conduction (heat.hpp). --size counts the
// elements along an edge (with --scale weak: of the cube that a thread of a PE would have). A run makes the mesh, assembles the equations, imposes the given temperatures, and solves by
// 4 iterations of conjugate gradients an element of the edge. It is right when the temperatures are those of the heat
// equation, as closely as the mesh allows, and those of the equations of the mesh, as closely as the solver allows:
// what the elements have to do with heat shows in the first, a contribution that is missing in the second.
//
// Of thread 0's time `gather` is the sum of what elements of several PEs add to a row, `exchange` packing, sending and
// waiting for entries of vectors, `sum` the sums over all PEs, `product` the products with the matrix, `vectors` inner
// products and updates; `compute` is the rest: waiting for the PE's other threads.
//
// The figures of merit are those of MiniFE's report, with its counts of operations, which take the elements for the
// rows of vectors. Its "MATVEC" has the exchange. "FE assembly" it prints as a time alone, "DOF" not at all.
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
#include "apps/krylov/forms.hpp"
#include "apps/minife/heat.hpp"
#include "apps/minife/mesh.hpp"
#include "apps/minife/system.hpp"

namespace shmem_mt {
namespace {

constexpr const char* kName = "minife";
constexpr long kLargestEdge = 1200;  // 1201^3 nodes can be counted by an int32_t
constexpr double kTolerance = 1e-8;  // how far a node may be from the solution of the equations of the mesh

class MiniFe final : public MiniApp {
  public:
    // Collective.
    MiniFe(Job& job, const FeCube& cube, FeMesh& mesh, FeSystem& system, const KrylovForm& form, KrylovSolver& solver)
        : MiniApp(job, form.name,
                  {{"generate", false},
                   {"assemble", false},
                   {"gather", true},
                   {"impose", false},
                   {"exchange", true},
                   {"sum", true},
                   {"product", false},
                   {"vectors", false},
                   {"solve", false, true}}),
          edge_(cube.edge()),
          nodes_(cube.firsts().back()),
          heat_(cube.edge()),
          mesh_(mesh),
          system_(system),
          form_(form),
          solver_(solver) {
        poll_rows_ = place_polls(
            job, kName, form, [&](long rows) { solver_.set_poll_rows(rows); },
            [&](int thread) { solver_.solve(thread, system_.right_side(), kTuningIterations); });
        solver_.take_seconds();
    }

    void describe(Json& params) const override {
        params.integer("edge", edge_);
        describe_sync(form_.sync, params);
    }

    void explain(Json& verdict) const override {
        const double square = 1 / static_cast<double>(edge_ * edge_);
        verdict.integer("nodes", nodes_).number("residual", solver_.norms().back() / solver_.norms().front());
        verdict.number("error", error_).number("error_over_h2", error_ / square).number("most_over_h2", FeHeat::kError);
        verdict.number("deviation", deviation_).number("tolerance", kTolerance).number("drift", drift_);
        verdict.number("product_imbalance", solver_.imbalance()).integer("exchange_messages", solver_.messages());
    }

    // Iterations over more nodes are more work: where the problem grows, nodes are counted.
    double work() const override {
        return static_cast<double>(iterations()) * (is_weak(job_.options()) ? static_cast<double>(nodes_) : 1.0);
    }
    const char* unit() const override { return is_weak(job_.options()) ? "node-iterations" : "iterations"; }

    std::vector<Figure> figures() const override {
        const double edge = static_cast<double>(edge_), times = static_cast<double>(iterations());
        const double elements = edge * edge * edge, entries = std::pow(3 * edge + 1, 3);
        const double product = 2e-6 * entries * (times + 1);
        const double vectors = 1e-6 * elements * (2 * 2 * times + 3 * (3 * times + 2));
        return {{"Total CG", "Mflops", "the solver", product + vectors, {kSolve}},
                {"MATVEC", "Mflops", "products and the exchange", product, {kProduct, kExchange}},
                {"DOT and WAXPY", "Mflops", "inner products with their sums, and updates", vectors, {kSum, kVectors}},
                {"FE assembly", "elements/s", "assembly and the rows of other PEs", elements, {kAssemble, kGather}},
                {"DOF", "DOF/s", "the solver", static_cast<double>(nodes_) * times, {kSolve}}};
    }

    double working_set() const override { return solver_.working_set(); }

    void prepare() override {
        make_progress_as(form_);
        solver_.set_sync(form_.sync);
        solver_.set_poll_rows(poll_rows_);
    }

    void run(int thread) override {
        build(thread);
        spend(thread, kSolve, [&] { solver_.solve(thread, system_.right_side(), iterations()); });
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
        const double most = FeHeat::kError / static_cast<double>(edge_ * edge_);
        error_ = deviation_ = 0;
        for (size_t node = 0; node < solver_.x().size(); ++node) {
            const FePoint& at = mesh_.own_points()[node];
            const double error = std::abs(solver_.x()[node] - heat_.solution(at));
            const double deviation = std::abs(solver_.x()[node] - heat_.mesh_solution(at));
            checker.compare_word(error <= most, 1);
            checker.compare_word(deviation <= kTolerance, 1);
            keep_worse(&error_, error);
            keep_worse(&deviation_, deviation);
        }
        drift_ = solver_.drift(system_.right_side()) / solver_.norms().front();
        checker.compare_word(drift_ <= most_drift(form_), 1);
        error_ = largest_of(job_, error_);
        deviation_ = largest_of(job_, deviation_);
    }

  private:
    enum : size_t { kGenerate, kAssemble, kGather, kImpose, kExchange, kSum, kProduct, kVectors, kSolve };
    static constexpr int kTuningIterations = 5;

    // All but the solution.
    void build(int thread) {
        spend(thread, kGenerate, [&] {
            mesh_.generate(thread, job_.threads());
            job_.team().barrier();
        });
        spend(thread, kAssemble, [&] { system_.assemble(thread); });
        spend(thread, kGather, [&] { system_.gather(thread); });
        spend(thread, kImpose, [&] { system_.fix(thread, [&](const FePoint& at) { return heat_.given(at); }); });
        spend(thread, kExchange, [&] { system_.exchange_fixed(thread); });
        spend(thread, kImpose, [&] { system_.eliminate(thread); });
    }

    int iterations() const { return static_cast<int>(4 * edge_); }

    const long edge_, nodes_;
    const FeHeat heat_;
    FeMesh& mesh_;
    FeSystem& system_;
    const KrylovForm form_;
    KrylovSolver& solver_;
    long poll_rows_ = 0;
    double error_ = 0, deviation_ = 0, drift_ = 0;  // the largest of the last run
};

void run_all(Job& job, long edge) {
    const FeCube cube(edge, job.n_pes());
    constexpr double kBytesOfNode =
        1000;  // the matrix has 324, the lists of its columns while it is made about as much
    const long nodes = volume(cube.nodes(job.me()));
    check_memory(job, kBytesOfNode * static_cast<double>(nodes), "--size");
    FeMesh mesh(job.team(), cube, job.me());
    const std::vector<Sync> syncs = krylov_syncs(job, kName);
    FeSystem system(job, cube, mesh, syncs);
    const FeHeat heat(edge);
    job.team().run([&](int thread) { system.build(thread, [&](const FePoint& at) { return heat.given(at); }); });
    job.barrier();
    KrylovSolvers solvers(job, system.equations(), system.halo());
    std::vector<std::unique_ptr<MiniApp>> forms;
    for (const KrylovForm& form : krylov_forms(job, kName, syncs))
        forms.push_back(std::make_unique<MiniFe>(job, cube, mesh, system, form, solvers.of(form.style)));
    run_forms(job, kName, forms);
}

long edge_of(const char* program, const Options& options) {
    const long edge = size_of(options, {12, 48, 96, 192});
    if (edge < FeHeat::kLeastEdge || edge > kLargestEdge)
        usage_error(program, "--size " + options.size + ": the cube has " + std::to_string(FeHeat::kLeastEdge) +
                                 " to " + std::to_string(kLargestEdge) + " elements along an edge");
    return edge;
}

}  // namespace
}  // namespace shmem_mt

int main(int argc, char** argv) {
    using namespace shmem_mt;
    const Options options = parse_options(argc, argv, Options(), form_names(Ghosts::kExchanged));
    const long edge = edge_of(argv[0], options);
    return run_program(kName, options, [&](Job& job) { run_all(job, whole_length(job, edge, 3, kLargestEdge)); });
}
