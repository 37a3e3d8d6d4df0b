// Pipelined conjugate gradients (apps/common/pipelined_scalars.hpp). Recurrences for w = A r, s = A p and z = A s make
// both inner products of an iteration, r r and w r, known at its begin: one sum for both goes on behind the product
// n = A w, and so does the exchange of w. The recurrences round in more places than the other forms.
#pragma once

#include "apps/common/pipelined_scalars.hpp"
#include "apps/krylov/solver.hpp"

#if SHMEM_MT_HAVE_PROGRESS
namespace shmem_mt {

class KrylovPipelined final : public KrylovSolver {
  public:
    // Collective.
    KrylovPipelined(Job& job, const KrylovSystem& system, KrylovHalo& halo)
        : KrylovSolver(job, system, halo),
          w_(with_ghosts()),
          n_(own()),
          p_(own()),
          s_(own()),
          z_(own()),
          other_sums_(slice_sums_.size()) {
        touch({&w_, &n_, &p_, &s_, &z_});
    }

  private:
    using Factors = PipelinedScalars::Factors;

    void iterate(int thread, const double* b, int iterations) override {
        begin(thread, b);
        Factors factors;
        for (int iteration = 0; iteration < iterations; ++iteration) {
            const bool last = iteration + 1 == iterations;
            begin_sums(thread);
            if (!last)
                multiply_hiding(thread, w_.data(), n_.data());
            factors = finish_sums(thread, factors, iteration == 0);
            for_slices(thread, [&](size_t slice, size_t row, long n) {
                renew(&s_[row], factors.beta, &w_[row], n);
                renew(&p_[row], factors.beta, &r_[row], n);
                add(&x_[row], factors.alpha, &p_[row], n);
                slice_sums_[slice] = add_dot(&r_[row], -factors.alpha, &s_[row], n);
                if (last)
                    return;
                renew(&z_[row], factors.beta, &n_[row], n);
                add(&w_[row], -factors.alpha, &z_[row], n);
                other_sums_[slice] = dot(&w_[row], &r_[row], n);
            });
        }
        begin_sums(thread);
        finish_sums(thread, factors, false);
    }

    // r = b, w = A r, and nothing of the vectors that come from the iteration before.
    void begin(int thread, const double* b) {
        for_slices(thread, [&](size_t slice, size_t row, long n) {
            std::copy_n(b + row, n, &r_[row]);
            for (Untouched<double>* zero : {&x_, &p_, &s_, &z_}) std::fill_n(&(*zero)[row], n, 0.0);
            slice_sums_[slice] = dot(b + row, b + row, n);
        });
        job_.team().barrier();
        multiply_hiding(thread, r_.data(), w_.data());
        job_.team().barrier();
        for_slices(thread, [&](size_t slice, size_t row, long n) { other_sums_[slice] = dot(&w_[row], &r_[row], n); });
    }

    // r r and w r over all PEs. A barrier.
    void begin_sums(int thread) {
        job_.team().barrier();
        if (thread == 0)
            booked(thread, &seconds_.sum, [&] { scalars_.post(sum_in_order(slice_sums_), sum_in_order(other_sums_)); });
    }

    // Every thread gets what follows from them; the norm is taken down.
    Factors finish_sums(int thread, const Factors& before, bool first) {
        if (thread == 0) {
            booked(thread, &seconds_.sum, [&] { scalars_.wait(); });
            record(scalars_.rho());
            first_rho_ = first ? scalars_.rho() : first_rho_;
        }
        job_.team().barrier();
        Factors factors = scalars_.factors(before, first);
        factors.alpha = settled(factors.rho, first_rho_) ? 0 : factors.alpha;
        return factors;
    }

    void poll() override { poll_progress(); }

    NonblockingSum sum_;
    PipelinedScalars scalars_{sum_};
    Untouched<double> w_;              // own rows, with ghosts
    Untouched<double> n_, p_, s_, z_;  // own rows
    std::vector<double> other_sums_;   // by slice
    double first_rho_ = 0;             // of the solve
};

}  // namespace shmem_mt
#endif
