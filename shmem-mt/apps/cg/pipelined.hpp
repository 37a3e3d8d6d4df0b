// Pipelined conjugate gradients (apps/common/pipelined_scalars.hpp). Recurrences for w = A r, s = A p and a = A s
// replace the products on which the inner products would depend, so that both are summed up behind the product n = A w
// of their iteration.
//
// Rounding lets the recurrences drift from the vectors that they stand for: |x - A z| ends at 1e-10 in the first step,
// at 1e-12 in the last, where the other forms have 1e-13 and 1e-15 (class A). zeta depends on z by way of x z alone and
// stays right to 1e-12, so no residual is computed anew on the way, and the tolerance is that of the other forms.
#pragma once

#include "apps/cg/overlapped.hpp"
#include "apps/common/pipelined_scalars.hpp"

#if SHMEM_MT_HAVE_PROGRESS
namespace shmem_mt {

class CgPipelined final : public CgOverlapped {
  public:
    // Collective.
    CgPipelined(Job& job, const CgClass& problem, const SparseMatrix& matrix)
        : CgOverlapped(job, problem, matrix),
          w_(x_.size()),
          a_(x_.size()),
          r_(rows_part_.size()),
          s_(r_.size()),
          p_(r_.size()),
          other_sums_(slice_sums_.size()) {}

  private:
    using Factors = PipelinedScalars::Factors;

    void iterate(int thread) override {
        begin(thread);
        Factors factors;
        for (int iteration = 1; iteration < kCgIterations; ++iteration) {
            begin_sums(thread);
            const double* const n = products_[iteration % 2];
            multiply_and_send(thread, w_.data(), products_[iteration % 2]);
            factors = finish_sums(thread, factors, iteration == 1);
            update_own(thread, factors);
            for (long piece = 0; piece < layout_.pieces(); ++piece) {
                arrive(thread, piece);
                for_blocks(thread, layout_.blocks_of(piece), [&](const Block& block) {
                    double* const a = &a_[static_cast<size_t>(block.position)];
                    renew(a, factors.beta, n + block.position, block.length);
                    add(&w_[static_cast<size_t>(block.position)], -factors.alpha, a, block.length);
                });
            }
            job_.team().barrier();
        }
        begin_sums(thread);
        update_own(thread, finish_sums(thread, factors, false));
        job_.team().barrier();
        if (thread == 0) {
            begin_send(own_z_, z_);
            send_rest();
        }
        for (long piece = 0; piece < layout_.pieces(); ++piece) arrive(thread, piece);
    }

    // r = x, w = A r, and nothing of the vectors that come from the iteration before.
    void begin(int thread) {
        for_slices(thread, [&](size_t slice, const Range& rows, long place) {
            double* const r = &r_[static_cast<size_t>(rows.begin)];
            std::copy_n(&x_[static_cast<size_t>(place)], rows.end - rows.begin, r);
            slice_sums_[slice] = dot(r, r, rows.end - rows.begin);
            for (double* own : {own_z_, s_.data(), p_.data()}) std::fill(own + rows.begin, own + rows.end, 0.0);
        });
        for_blocks(thread, [&](const Block& block) {
            std::fill_n(&a_[static_cast<size_t>(block.position)], block.length, 0.0);
        });
        multiply_and_send(thread, x_.data(), products_[0]);
        for (long piece = 0; piece < layout_.pieces(); ++piece) {
            arrive(thread, piece);
            for_blocks(thread, layout_.blocks_of(piece), [&](const Block& block) {
                std::copy_n(products_[0] + block.position, block.length, &w_[static_cast<size_t>(block.position)]);
            });
        }
        job_.team().barrier();
    }

    // r r, whose part is in slice_sums_, and w r, over all PEs.
    void begin_sums(int thread) {
        for_slices(thread, [&](size_t slice, const Range& rows, long place) {
            other_sums_[slice] =
                dot(&w_[static_cast<size_t>(place)], &r_[static_cast<size_t>(rows.begin)], rows.end - rows.begin);
        });
        job_.team().barrier();
        if (thread == 0)
            scalars_.post(own_total(slice_sums_), own_total(other_sums_));
    }

    Factors finish_sums(int thread, const Factors& before, bool first) {
        if (thread == 0)
            waiting([&] { scalars_.wait(); });
        job_.team().barrier();
        return scalars_.factors(before, first);
    }

    void update_own(int thread, const Factors& factors) {
        for_slices(thread, [&](size_t slice, const Range& rows, long place) {
            const long length = rows.end - rows.begin;
            double* const r = &r_[static_cast<size_t>(rows.begin)];
            double* const s = &s_[static_cast<size_t>(rows.begin)];
            double* const p = &p_[static_cast<size_t>(rows.begin)];
            renew(s, factors.beta, &w_[static_cast<size_t>(place)], length);
            renew(p, factors.beta, r, length);
            add(own_z_ + rows.begin, factors.alpha, p, length);
            slice_sums_[slice] = add_dot(r, -factors.alpha, s, length);
        });
    }

    Untouched<double> w_, a_;      // whole
    Untouched<double> r_, s_, p_;  // own rows
    std::vector<double> other_sums_;
    PipelinedScalars scalars_{sum_};
};

}  // namespace shmem_mt
#endif
