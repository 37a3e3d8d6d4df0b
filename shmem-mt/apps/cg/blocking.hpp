// CG with blocking collectives: in each iteration two sums over all PEs, and a collect of the new direction.
#pragma once

#include "apps/cg/solver.hpp"
#include "apps/common/blocking_collectives.hpp"

namespace shmem_mt {

class CgBlocking final : public CgSolver {
  public:
    // Collective.
    CgBlocking(Job& job, const CgClass& problem, const SparseMatrix& matrix)
        : CgSolver(job, problem, CgLayout(problem.n, job.n_pes(), job.me(), 1), matrix),
          p_(symmetric_vector(layout_.whole())),
          own_p_(symmetric_vector(layout_.rows())),
          own_z_(symmetric_vector(layout_.rows())),
          r_(rows_part_.size()) {}

  private:
    void iterate(int thread) override {
        const Range mine = stretch_of_whole(thread);
        std::copy(&x_[static_cast<size_t>(mine.begin)], &x_[0] + mine.end, p_ + mine.begin);
        for_slices(thread, [&](size_t, const Range& rows, long place) {
            for (long row = rows.begin; row < rows.end; ++row) {
                own_p_[row] = r_[static_cast<size_t>(row)] = x_[static_cast<size_t>(place + row - rows.begin)];
                own_z_[row] = 0;
            }
        });
        double rho = whole_dot(thread, x_.data(), x_.data());
        for (int iteration = 1;; ++iteration) {
            multiply(thread, layout_.all_slices(), p_, rows_part_.data());
            for_slices(thread, [&](size_t slice, const Range& rows, long) {
                slice_sums_[slice] = dot(own_p_ + rows.begin, q(rows), length(rows));
            });
            const double alpha = rho / sum(thread);
            for_slices(thread, [&](size_t, const Range& rows, long) {
                add(own_z_ + rows.begin, alpha, own_p_ + rows.begin, length(rows));
            });
            if (iteration == kCgIterations)
                break;
            for_slices(thread, [&](size_t slice, const Range& rows, long) {
                slice_sums_[slice] = add_dot(&r_[static_cast<size_t>(rows.begin)], -alpha, q(rows), length(rows));
            });
            const double before = rho;
            rho = sum(thread);
            for_slices(thread, [&](size_t, const Range& rows, long) {
                renew(own_p_ + rows.begin, rho / before, &r_[static_cast<size_t>(rows.begin)], length(rows));
            });
            collect(thread, p_, own_p_);
        }
        collect(thread, z_, own_z_);
    }

    void begin_residual(double own) override {
        residual_ = waiting([&] { return collectives_.sum(own); });
    }
    double finish_residual() override { return residual_; }

    // Of slice_sums_ over all PEs; every thread gets it.
    double sum(int thread) {
        job_.team().barrier();
        if (thread == 0)
            sum_ = waiting([&] { return collectives_.sum(own_total(slice_sums_)); });
        job_.team().barrier();
        return sum_;
    }

    void collect(int thread, double* whole, const double* own) {
        job_.team().barrier();
        if (thread == 0) {
            const size_t nelems = told(layout_.rows());
            if (nelems > 0)
                waiting([&] { collectives_.fcollect(whole, own, nelems); });
        }
        job_.team().barrier();
    }

    const double* q(const Range& rows) const { return &rows_part_[static_cast<size_t>(rows.begin)]; }
    static long length(const Range& rows) { return rows.end - rows.begin; }

    BlockingCollectives collectives_;
    double* const p_;      // whole, symmetric
    double* const own_p_;  // own rows, symmetric
    double* const own_z_;  // own rows, symmetric
    Untouched<double> r_;
    double sum_ = 0, residual_ = 0;
};

}  // namespace shmem_mt
