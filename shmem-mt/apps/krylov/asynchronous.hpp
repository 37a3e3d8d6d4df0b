// Gropp's asynchronous conjugate gradients (W. Gropp: Update on libraries for Blue Waters, 2010), without a
// preconditioner. A recurrence for s = A p makes the residual the vector to multiply with. So the sum r r goes on
// behind the product w = A r, and the exchange of r behind the rows that need no ghosts. The sum p s goes on behind the
// update of x, which is put off by an iteration: the p of that update is kept until then.
#pragma once

#include "apps/common/nonblocking_collectives.hpp"
#include "apps/krylov/solver.hpp"

#if SHMEM_MT_HAVE_PROGRESS
namespace shmem_mt {

class KrylovAsynchronous final : public KrylovSolver {
  public:
    // Collective.
    KrylovAsynchronous(Job& job, const KrylovSystem& system, KrylovHalo& halo)
        : KrylovSolver(job, system, halo), p_{Vector(own()), Vector(own())}, s_(own()), w_(own()) {
        touch({&p_[0], &p_[1], &s_, &w_});
    }

  private:
    using Vector = Untouched<double>;

    void iterate(int thread, const double* b, int iterations) override {
        for_slices(thread, [&](size_t slice, size_t row, long n) {
            std::copy_n(b + row, n, &r_[row]);
            for (Vector* zero : {&x_, &p_[0], &p_[1], &s_}) std::fill_n(&(*zero)[row], n, 0.0);
            slice_sums_[slice] = dot(b + row, b + row, n);
        });
        double rho = 0, first_rho = 0, alpha = 0;
        for (int iteration = 0; iteration < iterations; ++iteration) {
            const Vector& p_before = p_[iteration % 2];
            Vector& p = p_[(iteration + 1) % 2];
            begin_sum(thread);
            multiply_hiding(thread, r_.data(), w_.data());
            const double before = rho;
            rho = finish_rho(thread);
            first_rho = iteration == 0 ? rho : first_rho;
            const double beta = iteration == 0 ? 0 : rho / before;
            for_slices(thread, [&](size_t slice, size_t row, long n) {
                combine(&p[row], &r_[row], beta, &p_before[row], n);
                renew(&s_[row], beta, &w_[row], n);
                slice_sums_[slice] = dot(&p[row], &s_[row], n);
            });
            begin_sum(thread);
            for_slices(thread, [&](size_t, size_t row, long n) { add(&x_[row], alpha, &p_before[row], n); });
            const double p_dot_s = finish_sum(thread);
            alpha = settled(rho, first_rho) ? 0 : rho / p_dot_s;
            for_slices(thread, [&](size_t slice, size_t row, long n) {
                slice_sums_[slice] = add_dot(&r_[row], -alpha, &s_[row], n);
            });
        }
        begin_sum(thread);
        for_slices(thread, [&](size_t, size_t row, long n) { add(&x_[row], alpha, &p_[iterations % 2][row], n); });
        finish_rho(thread);
    }

    // Of slice_sums_ over all PEs. A barrier.
    void begin_sum(int thread) {
        job_.team().barrier();
        if (thread == 0)
            booked(thread, &seconds_.sum, [&] { sum_.post({sum_in_order(slice_sums_)}); });
    }

    // Every thread gets it.
    double finish_sum(int thread) {
        if (thread == 0)
            value_ = booked(thread, &seconds_.sum, [&] { return *sum_.wait(); });
        job_.team().barrier();
        return value_;
    }

    double finish_rho(int thread) {
        const double rho = finish_sum(thread);
        if (thread == 0)
            record(rho);
        return rho;
    }

    void poll() override { poll_progress(); }

    NonblockingSum sum_;
    Vector p_[2], s_, w_;  // own rows
    double value_ = 0;
};

}  // namespace shmem_mt
#endif
