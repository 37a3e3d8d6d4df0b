// SHMEM-MT minimd: molecular dynamics of a Lennard-Jones liquid, with the parameters of MiniMD (Mantevo; M. A. Heroux
// et al.: Improving Performance via Mini-applications, Sandia report SAND2009-5574, 2009) and its spatial split of the
// box (S. Plimpton: Fast Parallel Algorithms for Short-Range Molecular Dynamics, 1995). --size counts unit cells along
// an edge of the box, of 4 atoms each: 5 (tiny), 24 (small), 32 (medium), 64 (large); tiny and small run 100 steps, all
// others 1000. A run begins at the lattice. The phases are those of thread 0; waiting for the PE's other threads is
// `compute`.
//
// The figure of merit is MiniMD's "performance", whose clock starts behind the first forces: the lists of the first
// step and its forces are left out, and with them the motion into the second step, which is one pass with them here.
// Beside it "pair updates" are what the loop over lists makes: how often a second an atom is pulled by another one that
// is nearer than the cutoff.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "apps/common/memory_need.hpp"
#include "apps/common/mini_app.hpp"
#include "apps/common/problem_size.hpp"
#include "apps/minimd/dynamics.hpp"
#include "apps/minimd/known_runs.hpp"
#include "apps/minimd/reference.hpp"

namespace shmem_mt {
namespace {

constexpr const char* kName = "minimd";

// Of temperature, pressure and energies an atom: the rounding of sums over all atoms.
constexpr double kTolerance = 1e-10;

// Of the energy an atom. Velocity Verlet keeps an energy that differs by an eighth of (w dt)^2 kT, or less; w, the
// frequency at which an atom moves among its neighbours, is about 20.
constexpr double kDriftBound = 2e-3;

// Where a compiler contracts a * b + c it need not do so in the reference and in the run alike, and a difference of
// rounding grows by a factor of ten in 200 steps.
#ifdef __FP_FAST_FMA
constexpr bool kSameBits = false;
#else
constexpr bool kSameBits = true;
#endif

double tolerance(int step) {
    return kSameBits ? kTolerance : kTolerance * std::pow(10, step / 200.0);
}

struct Problem {
    long cells;
    int steps;
};

class MiniMd final : public MiniApp {
  public:
    // `reference` is empty where nothing is checked.
    MiniMd(Job& job, const char* form, Route route, bool overlaps, Sync sync, const Problem& problem,
           std::shared_ptr<MdDynamics> dynamics, const MdHistory& reference)
        : MiniApp(
              job, form,
              {{"force", false}, {"neighbour", false}, {"exchange", true}, {"reduce", true}, {"start", false, true}}),
          route_(route),
          overlaps_(overlaps),
          sync_(sync),
          problem_(problem),
          dynamics_(std::move(dynamics)),
          reference_(reference) {}

    void describe(Json& params) const override {
        params.integer("edge", problem_.cells).integer("steps", problem_.steps);
        describe_sync(sync_, params);
    }

    void explain(Json& verdict) const override {
        if (last_.thermo.empty())
            return;
        const MdThermo& end = last_.thermo.back();
        verdict.number("temperature", end.temperature).number("pressure", end.pressure);
        verdict.number("energy", end.energy).number("first_potential", last_.thermo.front().potential);
        verdict.number("deviation", deviation_).number("tolerance", tolerance(problem_.steps));
        verdict.number("drift", drift_).number("drift_bound", kDriftBound);
        verdict.integer("atoms", atoms_).integer("state", static_cast<long>(last_.state));
        verdict.boolean("same_bits", last_.state == reference_.state);
    }

    double work() const override {
        return static_cast<double>(4 * problem_.cells * problem_.cells * problem_.cells) * problem_.steps;
    }
    const char* unit() const override { return "atom-steps"; }

    std::vector<Figure> figures() const override {
        const double pulls = 2 * pairs_ * (problem_.steps + 1);  // each atom of a pair is pulled by itself
        return {{"performance", "atom-steps/s", "all steps behind the first forces", work(), {kStart}, true},
                {"pair updates", "pairs/s", "forces, and the motion of one pass with them", pulls, {kForce}}};
    }

    // Positions of two steps, velocities, and a list of the 78 neighbours that an atom has within reach, on the mean.
    double working_set() const override {
        constexpr double kBytesOfAtom = 9 * sizeof(double) + 78 * sizeof(int32_t);
        return kBytesOfAtom * work() / problem_.steps / job_.n_pes();
    }

    void prepare() override { dynamics_->prepare(sync_); }

    void run(int thread) override {
        job_.with_link(route_, thread, [&](const auto& link) { simulate(link, thread); });
        if (thread == 0)
            pairs_ = dynamics_->mean_pairs();
    }

    void check(Checker& checker) override {
        last_ = dynamics_->history();
        atoms_ = dynamics_->found_atoms();
        deviation_ = drift_ = 0;
        checker.compare_word(atoms_, static_cast<long>(work()) / problem_.steps);
        if (kSameBits)
            checker.compare(&last_.state, &reference_.state, sizeof last_.state);
        checker.compare_word(static_cast<long>(last_.thermo.size()), static_cast<long>(reference_.thermo.size()));
        for (size_t i = 0; i < std::min(last_.thermo.size(), reference_.thermo.size()); ++i) {
            const MdThermo &is = last_.thermo[i], &should = reference_.thermo[i];
            for (double MdThermo::* const field :
                 {&MdThermo::temperature, &MdThermo::pressure, &MdThermo::potential, &MdThermo::energy}) {
                const double off = std::abs(is.*field - should.*field) / std::max(1.0, std::abs(should.*field));
                checker.compare_word(off <= tolerance(static_cast<int>(i) * kThermoSteps), 1);  // false: no number
                deviation_ = off <= deviation_ ? deviation_ : off;
            }
            const double drift = std::abs(is.conserved - last_.thermo[0].conserved);
            checker.compare_word(drift <= kDriftBound, 1);
            drift_ = drift <= drift_ ? drift_ : drift;
        }
    }

  private:
    enum : size_t { kForce, kNeighbour, kExchange, kReduce, kStart };

    template <class Link>
    void simulate(const Link& link, int thread) {
        MdDynamics& md = *dynamics_;
        const double begin = now_seconds();
        rebuild(link, thread, 0);
        for (int step = 0;; ++step) {
            const bool lists = (step + 1) % kListSteps == 0;
            const bool early = overlaps_ && !lists && step < problem_.steps;
            if (early) {
                spend(thread, kForce, [&] { md.move_seen(thread, step); });
                job_.team().barrier();
                spend(thread, kExchange, [&] { md.send_positions(link, thread, step + 1); });
                spend(thread, kForce, [&] { md.move_unseen(thread, step); });
            } else {
                spend(thread, kForce, [&] { md.move(thread, step); });
            }
            job_.team().barrier();
            if (step == 0 && thread == 0)
                book(kStart, now_seconds() - begin);
            if (step % kThermoSteps == 0 && thread == 0)
                spend(thread, kReduce, [&] { md.reduce(); });
            if (step == problem_.steps) {
                // The next run may use other contexts, whose quiet is not for these buffers, nor for those of migrations.
                md.finish(link, thread);
                link.quiet();
                return;
            }
            if (lists) {
                rebuild(link, thread, step + 1);
                continue;
            }
            spend(thread, kExchange, [&] {
                if (!early)
                    md.send_positions(link, thread, step + 1);
                md.await_positions(link, thread, step + 1);
            });
            job_.team().barrier();
        }
    }

    template <class Link>
    void rebuild(const Link& link, int thread, int step) {
        MdDynamics& md = *dynamics_;
        spend(thread, kExchange, [&] { md.migrate(link, thread, step); });
        spend(thread, kNeighbour, [&] { md.take_arrivals(thread, step); });
        job_.team().barrier();
        spend(thread, kExchange, [&] { md.describe(link, thread, step); });
        spend(thread, kNeighbour, [&] { md.build_lists(thread, step); });
    }

    const Route route_;
    const bool overlaps_;
    const Sync sync_;
    const Problem problem_;
    const std::shared_ptr<MdDynamics> dynamics_;
    const MdHistory& reference_;
    MdHistory last_;
    double deviation_ = 0, drift_ = 0;
    long atoms_ = 0;
    double pairs_ = 0;  // of the last run
};

// What a serial run comes to; where that is not known, PE 0 makes the run, once. Collective.
MdHistory find_reference(Job& job, const MdModel& model, int steps) {
    MdHistory history = known_run(model.cells(), steps);
    if (!history.thermo.empty())
        return history;
    history.thermo.resize(static_cast<size_t>(steps / kThermoSteps + 1));
    const size_t bytes = history.thermo.size() * sizeof(MdThermo);
    MdThermo* const thermo = static_cast<MdThermo*>(symmetric_alloc(bytes));
    uint64_t* const state = static_cast<uint64_t*>(symmetric_alloc(sizeof(uint64_t)));
    if (job.me() == 0) {
        history = MdReference(model).run(steps);
        for (int pe = 0; pe < job.n_pes(); ++pe) {
            shmem_putmem(thermo, history.thermo.data(), bytes, pe);
            shmem_putmem(state, &history.state, sizeof *state, pe);
        }
    }
    job.barrier();
    return {{thermo, thermo + history.thermo.size()}, *state};
}

void run_all(Job& job, const Problem& problem) {
    const bool known = !known_run(problem.cells, problem.steps).thermo.empty();
    const bool reference_here = job.options().validate && job.me() == 0 && !known;
    check_memory(job,
                 MdDynamics::memory_need(MdLayout(problem.cells, job.n_pes(), job.me())) +
                     (reference_here ? MdReference::memory_need(problem.cells) : 0),
                 "--size");
    const MdModel model(problem.cells);
    const auto dynamics = std::make_shared<MdDynamics>(job, model, problem.steps);
    MdHistory reference;
    if (job.options().validate)
        reference = find_reference(job, model, problem.steps);
    const std::vector<Sync> syncs = wanted_syncs(job, kName, {Sync::kSignal, Sync::kBarrier, Sync::kRequest});
    std::vector<std::unique_ptr<MiniApp>> forms;
    for (const std::string& form : job.options().ops) {
        const std::string reason = form == "private" ? job.why_no_context(Route::kPrivateContext) : "";
        if (!reason.empty()) {
            job.skip(kName, form, reason);
            continue;
        }
        const Route route = form == "default" ? Route::kDefaultContext : job.own_route();
        for (const Sync sync : syncs)
            forms.push_back(
                std::make_unique<MiniMd>(job, form.c_str(), route, form == "auto", sync, problem, dynamics, reference));
    }
    run_forms(job, kName, forms);
}

// Ends the program when that is too large.
Problem problem_of(const char* program, const Options& options) {
    const long cells = size_of(options, {5, 24, 32, 64});
    if (cells > kMostCells)
        usage_error(program, "--size " + options.size + ": a box has at most " + std::to_string(kMostCells) +
                                 " unit cells along an edge");
    return {cells, options.size == "tiny" || options.size == "small" ? 100 : 1000};
}

}  // namespace
}  // namespace shmem_mt

int main(int argc, char** argv) {
    using namespace shmem_mt;
    const Options options = parse_options(argc, argv, Options(), {"default", "private", "auto"});
    const Problem problem = problem_of(argv[0], options);
    return run_program(kName, options, [&](Job& job) {
        run_all(job, {whole_length(job, problem.cells, 3, kMostCells), problem.steps});
    });
}
