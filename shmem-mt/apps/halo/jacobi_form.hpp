// One form of the halo mini-app's solvers: Jacobi's method with 7 or 27 points, in step, in step with the faces hidden
// behind the inner cells, or asynchronous; through the default context or one a thread.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "apps/common/mini_app.hpp"
#include "apps/halo/jacobi_team.hpp"
#include "programs/common/transfer_points.hpp"

namespace shmem_mt {

struct JacobiForm {
    const char* name;
    Stencil stencil;
    bool in_step;
    bool overlapped = false;  // only with 7 points: with 27, faces follow one another axis by axis
};

constexpr JacobiForm kJacobiForms[] = {
    {"jacobi7", Stencil::k7, true},   {"jacobi7-overlapped", Stencil::k7, true, true},
    {"jacobi27", Stencil::k27, true}, {"async7", Stencil::k7, false},
    {"async27", Stencil::k27, false},
};

// What one worker alone makes of the whole grid: the field that all forms in step must have, bit for bit. Only where it
// takes seconds at most.
class JacobiReference {
  public:
    static constexpr long kLargestEdge = 64;

    JacobiReference(Stencil stencil, long edge) : whole_(stencil, edge, {Range{0, edge}, {0, edge}, {0, edge}}) {
        for (bool calm = false; !calm;) {
            const bool look = ++iterations_ % JacobiTeam::kCheckEvery == 0;
            calm = whole_.sweep(look) == 0 && look;
        }
    }

    long iterations() const { return iterations_; }
    double value(long x, long y, long z) const { return whole_.value(whole_.shape().index(x + 1, y + 1, z + 1)); }

  private:
    JacobiBox whole_;
    long iterations_ = 0;
};

class Jacobi final : public MiniApp {
  public:
    // `reference` is null where there is none.
    Jacobi(Job& job, const JacobiForm& form, Route route, std::shared_ptr<JacobiTeam> team,
           std::shared_ptr<const JacobiReference> reference)
        : MiniApp(job, form.name, {{"exchange", true}, {"pack", false}}),
          form_(form),
          route_(route),
          team_(std::move(team)),
          reference_(form.in_step ? std::move(reference) : nullptr) {}

    void describe(Json& params) const override {
        const JacobiGrid& grid = team_->grid();
        params.text("context", context_name(route_)).text("sync", "put_signal").integer("edge", team_->edge());
        params.text("grid", std::to_string(grid.count(0)) + "x" + std::to_string(grid.count(1)) + "x" +
                                std::to_string(grid.count(2)));
    }

    void explain(Json& verdict) const override {
        verdict.integer("iterations", result_.iterations).number("error", error_);
        verdict.number("tolerance", kJacobiTolerance);
        if (form_.in_step)
            verdict.text("compared_with", reference_ ? "a serial run, bit for bit" : "the known solution");
        else
            verdict.text("compared_with", "the known solution").integer("rounds", result_.rounds);
    }

    // Of the runs so far, the mean: asynchronous ones differ.
    double work() const override { return runs_ > 0 ? updates_ / static_cast<double>(runs_) : 0; }
    const char* unit() const override { return "cell updates"; }

    // The field, the result of a sweep, and the right side.
    double working_set() const override {
        return 3 * sizeof(double) * std::pow(static_cast<double>(team_->edge()), 3) / job_.n_pes();
    }

    void prepare() override {
        team_->for_boxes([](JacobiBox& box) { box.clear(); });
    }

    void run(int thread) override {
        JacobiResult result;
        job_.with_link(route_, thread, [&](const auto& link) {
            result =
                form_.in_step ? team_->synchronous(link, thread, form_.overlapped) : team_->asynchronous(link, thread);
        });
        if (thread != 0)
            return;
        const JacobiExchange::Seconds seconds = team_->take_seconds();
        book(0, seconds.exchange);
        book(1, seconds.pack);
        result_ = result;
        ++runs_;
        updates_ += static_cast<double>(result.iterations) * std::pow(static_cast<double>(team_->edge()), 3);
    }

    // Collective.
    void check(Checker& checker) override {
        double error = 0;
        long different = 0;
        team_->for_boxes([&](const JacobiBox& box) {
            box.for_cells([&](long index, long x, long y, long z) {
                const double value = box.value(index);
                error = std::max(error, distance(value, known_solution(team_->edge(), x, y, z)));
                if (reference_ != nullptr) {
                    const double right = reference_->value(x, y, z);
                    different += std::memcmp(&value, &right, sizeof value) != 0;
                }
            });
        });
        Report mine;
        mine.seconds = error;
        error_ = job_.agree(mine).max_seconds;
        checker.compare_word(error <= kJacobiTolerance, 1);
        checker.compare_word(different, 0);
        if (reference_ != nullptr)
            checker.compare_word(result_.iterations, reference_->iterations());
    }

  private:
    // Infinite for what is no number.
    static double distance(double a, double b) {
        const double difference = std::abs(a - b);
        return difference >= 0 ? difference : std::numeric_limits<double>::infinity();
    }

    const JacobiForm form_;
    const Route route_;
    const std::shared_ptr<JacobiTeam> team_;
    const std::shared_ptr<const JacobiReference> reference_;
    JacobiResult result_;
    double error_ = 0, updates_ = 0;
    long runs_ = 0;
};

}  // namespace shmem_mt
