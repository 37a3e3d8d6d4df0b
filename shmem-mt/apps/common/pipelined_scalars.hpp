// The scalars of pipelined conjugate gradients (P. Ghysels, W. Vanroose: Hiding global synchronization latency in the
// preconditioned Conjugate Gradient algorithm, 2014), without a preconditioner: both inner products of an iteration are
// one sum over all PEs, and the factors of the recurrences follow from the inner products.
#pragma once

#include "apps/common/nonblocking_collectives.hpp"

#if SHMEM_MT_HAVE_PROGRESS
namespace shmem_mt {

class PipelinedScalars {
  public:
    struct Factors {
        double alpha = 0, beta = 0;
        double rho = 0;  // r r
    };

    explicit PipelinedScalars(NonblockingSum& sum) : sum_(sum) {}

    // Posts this PE's parts of r r and w r; thread 0.
    void post(double own_rho, double own_w_dot_r) { sum_.post({own_rho, own_w_dot_r}); }

    // Waits for the sums; thread 0. Other threads read them behind a barrier.
    void wait() {
        const double* const sums = sum_.wait();
        rho_ = sums[0];
        w_dot_r_ = sums[1];
    }

    double rho() const { return rho_; }

    // The factors that follow from the sums and from the factors of the iteration before; `first`: there is none.
    Factors factors(const Factors& before, bool first) const {
        const double beta = first ? 0 : rho_ / before.rho;
        return {rho_ / (first ? w_dot_r_ : w_dot_r_ - beta * rho_ / before.alpha), beta, rho_};
    }

  private:
    NonblockingSum& sum_;
    double rho_ = 0, w_dot_r_ = 0;
};

}  // namespace shmem_mt
#endif
