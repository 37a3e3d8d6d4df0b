// CG with non-blocking collectives, with the bits of the blocking form. Every PE gets the whole of each product q = A p
// (overlapped.hpp) and updates whole vectors r and p with it, so that their inner products need no sum over PEs. The
// last product of a step serves one inner product alone, so it is summed up over the PEs while z goes out.
#pragma once

#include "apps/cg/overlapped.hpp"

#if SHMEM_MT_HAVE_PROGRESS
namespace shmem_mt {

class CgNonblocking final : public CgOverlapped {
  public:
    // Collective.
    CgNonblocking(Job& job, const CgClass& problem, const SparseMatrix& matrix)
        : CgOverlapped(job, problem, matrix), p_(x_.size()), r_(x_.size()) {}

  private:
    void iterate(int thread) override {
        const Range mine = stretch_of_whole(thread);
        std::copy(&x_[0] + mine.begin, &x_[0] + mine.end, &p_[0] + mine.begin);
        std::copy(&x_[0] + mine.begin, &x_[0] + mine.end, &r_[0] + mine.begin);
        for_slices(thread,
                   [&](size_t, const Range& rows, long) { std::fill(own_z_ + rows.begin, own_z_ + rows.end, 0.0); });
        double rho = whole_dot(thread, x_.data(), x_.data());
        for (int iteration = 1; iteration < kCgIterations; ++iteration) {
            const double* const q = products_[iteration % 2];
            multiply_and_send(thread, p_.data(), products_[iteration % 2]);
            const double alpha = rho / received_dot(thread, p_.data(), q);
            for_blocks(thread, [&](const Block& block) {
                second_sums_[sum_of(block)] =
                    add_dot(&r_[static_cast<size_t>(block.position)], -alpha, q + block.position, block.length);
            });
            for_slices(thread, [&](size_t, const Range& rows, long place) {
                add(own_z_ + rows.begin, alpha, &p_[static_cast<size_t>(place)], rows.end - rows.begin);
            });
            job_.team().barrier();
            const double before = rho;
            rho = total(second_sums_);
            renew(&p_[0] + mine.begin, rho / before, &r_[0] + mine.begin, mine.end - mine.begin);
            job_.team().barrier();
        }
        finish_z(thread, rho);
    }

    // The inner product of x and what multiply_and_send has sent to y, each piece as soon as it is there. A barrier.
    double received_dot(int thread, const double* x, const double* y) {
        for (long piece = 0; piece < layout_.pieces(); ++piece) {
            arrive(thread, piece);
            for_blocks(thread, layout_.blocks_of(piece), [&](const Block& block) {
                first_sums_[sum_of(block)] = dot(x + block.position, y + block.position, block.length);
            });
        }
        job_.team().barrier();
        return total(first_sums_);
    }

    // The last iteration.
    void finish_z(int thread, double rho) {
        if (thread == 0) {
            begin_send(own_z_, z_);
            send_rest();
        }
        multiply(thread, layout_.all_slices(), p_.data(), own_product_);
        for_slices(thread, [&](size_t slice, const Range& rows, long place) {
            slice_sums_[slice] = dot(&p_[static_cast<size_t>(place)], own_product_ + rows.begin, rows.end - rows.begin);
        });
        job_.team().barrier();
        if (thread == 0) {
            sum_.post({own_total(slice_sums_)});
            p_dot_q_ = *waiting([&] { return sum_.wait(); });
        }
        for (long piece = 0; piece < layout_.pieces(); ++piece) arrive(thread, piece);
        const Range mine = stretch_of_whole(thread);
        add(z_ + mine.begin, rho / p_dot_q_, &p_[0] + mine.begin, mine.end - mine.begin);
        job_.team().barrier();
    }

    Untouched<double> p_, r_;  // whole
    double p_dot_q_ = 0;       // of the last iteration
};

}  // namespace shmem_mt
#endif
