// Conjugate gradients in the usual form: in each iteration the exchange of the direction p, the product, and two
// blocking sums over all PEs. The rows that need no ghosts may hide the exchange.
#pragma once

#include "apps/common/blocking_collectives.hpp"
#include "apps/krylov/solver.hpp"

namespace shmem_mt {

class KrylovBlocking final : public KrylovSolver {
  public:
    // Collective.
    KrylovBlocking(Job& job, const KrylovSystem& system, KrylovHalo& halo, bool hides_exchange)
        : KrylovSolver(job, system, halo), hides_exchange_(hides_exchange), p_(with_ghosts()), q_(own()) {
        touch({&p_, &q_});
    }

  private:
    void iterate(int thread, const double* b, int iterations) override {
        for_slices(thread, [&](size_t slice, size_t row, long n) {
            std::copy_n(b + row, n, &r_[row]);
            std::copy_n(b + row, n, &p_[row]);
            std::fill_n(&x_[row], n, 0.0);
            slice_sums_[slice] = dot(b + row, b + row, n);
        });
        double rho = sum(thread);
        const double first_rho = rho;
        for (int iteration = 0;; ++iteration) {
            if (thread == 0)
                record(rho);
            if (iteration == iterations)
                return;
            multiply_p(thread);
            for_slices(thread,
                       [&](size_t slice, size_t row, long n) { slice_sums_[slice] = dot(&p_[row], &q_[row], n); });
            const double p_dot_q = sum(thread);
            const double alpha = settled(rho, first_rho) ? 0 : rho / p_dot_q;
            for_slices(thread, [&](size_t slice, size_t row, long n) {
                add(&x_[row], alpha, &p_[row], n);
                slice_sums_[slice] = add_dot(&r_[row], -alpha, &q_[row], n);
            });
            const double before = rho;
            rho = sum(thread);
            const double beta = rho / before;
            for_slices(thread, [&](size_t, size_t row, long n) { renew(&p_[row], beta, &r_[row], n); });
        }
    }

    // q = A p; the thread's slices of q are there.
    void multiply_p(int thread) {
        job_.team().barrier();
        if (hides_exchange_) {
            multiply_hiding(thread, p_.data(), q_.data());
            return job_.team().barrier();
        }
        send(thread, p_.data());
        receive(thread, p_.data());
        job_.team().barrier();
        multiply_own(thread, p_.data(), q_.data());
    }

    // Of slice_sums_ over all PEs; every thread gets it.
    double sum(int thread) {
        job_.team().barrier();
        if (thread == 0)
            booked(thread, &seconds_.sum, [&] { sum_ = collectives_.sum(sum_in_order(slice_sums_)); });
        job_.team().barrier();
        return sum_;
    }

    const bool hides_exchange_;
    BlockingCollectives collectives_;
    Untouched<double> p_, q_;  // own rows; p_ with ghosts
    double sum_ = 0;
};

}  // namespace shmem_mt
