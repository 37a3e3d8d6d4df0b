// The solver of each style, as mini-apps with conjugate gradients have them.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "apps/common/forms.hpp"
#include "apps/common/syncs.hpp"
#include "apps/krylov/asynchronous.hpp"
#include "apps/krylov/blocking.hpp"
#include "apps/krylov/pipelined.hpp"

namespace shmem_mt {

// How far r may drift from b - A x, over the first |r|. Rounding comes to 1e-16 where r is updated with the product
// itself or one recurrence; with the three of the pipelined form it grows with the iterations, to 2e-14 in 200 of
// minife.
inline double most_drift(const Form& form) {
    return form.style == Style::kPipelined ? 1e-12 : 1e-15;
}

// A form, and what ends its exchanges.
struct KrylovForm : Form {
    Sync sync;
};

inline std::vector<Sync> krylov_syncs(const Job& job, const char* benchmark) {
    return wanted_syncs(job, benchmark, {Sync::kSignal, Sync::kBarrier, Sync::kRequest, Sync::kNeighbors, Sync::kPlan});
}

// Forms with blocking sums exchange by each of `syncs`, so that these alone differ; the others by put with signal.
// Collective.
inline std::vector<KrylovForm> krylov_forms(Job& job, const char* benchmark, const std::vector<Sync>& syncs) {
    std::vector<KrylovForm> forms;
    for (const Form& form : possible_forms(job, benchmark, Ghosts::kExchanged)) {
        for (const Sync sync : syncs) {
            if (sync == Sync::kSignal || !is_nonblocking(form))
                forms.push_back({form, sync});
        }
    }
    return forms;
}

// One solver of each style, made when it is first asked for. Forms that differ in the policy of progress share it.
class KrylovSolvers {
  public:
    KrylovSolvers(Job& job, const KrylovSystem& system, KrylovHalo& halo) : job_(job), system_(system), halo_(halo) {}

    // Collective.
    KrylovSolver& of(Style style) {
        std::unique_ptr<KrylovSolver>& solver = solvers_[style];
        if (solver == nullptr)
            solver = make(style);
        return *solver;
    }

  private:
    std::unique_ptr<KrylovSolver> make(Style style) {
#if SHMEM_MT_HAVE_PROGRESS
        if (style == Style::kPipelined)
            return std::make_unique<KrylovPipelined>(job_, system_, halo_);
        if (style == Style::kNonblocking)
            return std::make_unique<KrylovAsynchronous>(job_, system_, halo_);
#endif
        return std::make_unique<KrylovBlocking>(job_, system_, halo_, style == Style::kOverlapped);
    }

    Job& job_;
    const KrylovSystem& system_;
    KrylovHalo& halo_;
    std::map<Style, std::unique_ptr<KrylovSolver>> solvers_;
};

}  // namespace shmem_mt
