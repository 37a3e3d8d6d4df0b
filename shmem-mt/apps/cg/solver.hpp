// The power method around conjugate gradients, as all forms of CG share it. In each step a form solves A z = x by
// kCgIterations iterations from z = 0; zeta = shift + 1 / (x z) approaches an eigenvalue of the unshifted matrix, and z
// / |z| is the next x. Every PE has all of x and z, and computes zeta itself from equal numbers in equal order.
//
// All threads of a PE run through the same calls. The threads share the rows and the slices; thread 0 communicates. A
// thread reads what another thread has written only behind a barrier.
#pragma once

#include <cmath>
#include <vector>

#include "apps/cg/layout.hpp"
#include "apps/cg/matrix.hpp"
#include "apps/common/polling_product.hpp"
#include "apps/common/slices.hpp"
#include "apps/common/untouched.hpp"
#include "apps/common/vector_kernels.hpp"
#include "programs/common/clock.hpp"
#include "programs/common/job.hpp"

namespace shmem_mt {

class CgSolver {
  public:
    // `matrix` has this PE's rows, its columns in the order of the rows.
    CgSolver(Job& job, const CgClass& problem, const CgLayout& layout, const SparseMatrix& matrix)
        : job_(job),
          problem_(problem),
          layout_(layout),
          product_(job, matrix),
          x_(static_cast<size_t>(layout.whole())),
          rows_part_(static_cast<size_t>(layout.rows())),
          slice_sums_(static_cast<size_t>(layout.slices())),
          first_sums_(static_cast<size_t>(layout.slices() * layout.pes())),
          second_sums_(first_sums_.size()),
          columns_(matrix.columns.size()) {
        job.team().run([&](int thread) {
            const Range rows = rows_of_thread(layout_.rows(), thread, job_.threads());
            const size_t begin = static_cast<size_t>(matrix.starts[static_cast<size_t>(rows.begin)]);
            const size_t end = static_cast<size_t>(matrix.starts[static_cast<size_t>(rows.end)]);
            for (size_t i = begin; i < end; ++i)
                columns_[i] = static_cast<int32_t>(layout_.position(
                    static_cast<int>(matrix.columns[i] / layout_.rows()), matrix.columns[i] % layout_.rows()));
        });
        z_ = symmetric_vector(layout.whole());
    }

    virtual ~CgSolver() = default;
    CgSolver(const CgSolver&) = delete;
    CgSolver& operator=(const CgSolver&) = delete;

    // Everything from the first vector on, `steps` steps. All threads of all PEs.
    void solve(int thread, int steps) {
        for_blocks(thread, [&](const Block& block) {
            const long real = problem_.n - (block.pe * layout_.rows() + block.slice * kSlice);
            for (long i = 0; i < block.length; ++i) x_[static_cast<size_t>(block.position + i)] = i < real;
        });
        job_.team().barrier();
        for (int step = 0; step < steps; ++step) {
            iterate(thread);
            finish_step(thread);
        }
        if (thread == 0)
            residual_ = std::sqrt(finish_residual());
        job_.team().barrier();
    }

    // Polls after so many rows of the matrix product; 0: never.
    void set_poll_rows(long rows) { product_.set_poll_rows(rows); }

    long pieces() const { return layout_.pieces(); }
    double zeta() const { return zeta_; }
    double residual() const { return residual_; }  // |x - A z| of the last step

    // Seconds that thread 0 has spent in blocking collectives and in waits for requests since the last call.
    double take_wait_seconds() {
        const double seconds = wait_s_;
        wait_s_ = 0;
        return seconds;
    }

  protected:
    // Solves A z = x. Begins and ends with all threads past a barrier.
    virtual void iterate(int thread) = 0;

    // The sum over all PEs of what each gives, as asked for last; thread 0.
    virtual void begin_residual(double own) = 0;
    virtual double finish_residual() = 0;

    virtual void poll() {}

    double* symmetric_vector(long n) {
        return static_cast<double*>(shared_symmetric_alloc(job_, sizeof(double) * static_cast<size_t>(n)));
    }

    // q = A x for the thread's share of those slices; q has own rows.
    void multiply(int thread, const Range& slices, const double* x, double* q) {
        const Range rows = layout_.rows_of(slices.share(thread, job_.threads()));
        product_.multiply(thread, rows, columns_.data(), x, q, [&] { poll(); });
    }

    // f(block) for the thread's share of the blocks of whole vectors.
    template <class F>
    void for_blocks(int thread, F&& f) const {
        for_blocks(thread, layout_.all_blocks(), f);
    }
    template <class F>
    void for_blocks(int thread, const Range& blocks, F&& f) const {
        for_share(blocks, thread, job_.threads(), [&](long i) { f(layout_.blocks()[static_cast<size_t>(i)]); });
    }

    // f(slice, its rows, its place in whole vectors) for the thread's share of this PE's slices.
    template <class F>
    void for_slices(int thread, F&& f) const {
        for_share(layout_.all_slices(), thread, job_.threads(),
                  [&](long slice) { f(static_cast<size_t>(slice), layout_.rows_of_slice(slice), layout_.own(slice)); });
    }

    // The places of the thread's share of whole vectors.
    Range stretch_of_whole(int thread) const {
        const Range own = layout_.all_blocks().share(thread, job_.threads());
        return {begin_of_block(own.begin), begin_of_block(own.end)};
    }

    // Where a block's sum stands among those of all PEs.
    size_t sum_of(const Block& block) const { return static_cast<size_t>(block.pe * layout_.slices() + block.slice); }

    // The inner product of two whole vectors; a barrier.
    double whole_dot(int thread, const double* x, const double* y) {
        for_blocks(thread, [&](const Block& block) {
            first_sums_[sum_of(block)] = dot(x + block.position, y + block.position, block.length);
        });
        job_.team().barrier();
        return total(first_sums_);
    }

    // The sum of this PE's slices; and of those of all PEs, PE by PE, as a sum over all PEs adds them up.
    double own_total(const std::vector<double>& sums) const { return sum_in_order(sums.data(), layout_.slices()); }
    double total(const std::vector<double>& sums) const {
        double sum = own_total(sums);
        for (int pe = 1; pe < layout_.pes(); ++pe)
            sum += sum_in_order(&sums[static_cast<size_t>(pe * layout_.slices())], layout_.slices());
        return sum;
    }

    // f() counts as waiting for communication; thread 0.
    template <class F>
    auto waiting(F&& f) {
        return clocked(&wait_s_, f);
    }

    // How many elements the next exchange of vectors is told of; 0: it is left out. Differs with planted faults only.
    size_t told(long nelems) {
        const Fault fault = job_.options().fault;
        if (fault == Fault::kSkippedOperation || (fault == Fault::kStaleResult && exchanged_))
            return 0;
        exchanged_ = true;
        return static_cast<size_t>(fault == Fault::kLastElementMissing ? nelems - 1 : nelems);
    }

    Job& job_;
    const CgClass& problem_;
    const CgLayout layout_;
    PollingProduct product_;
    Untouched<double> x_;                           // whole
    double* z_ = nullptr;                           // whole, symmetric
    Untouched<double> rows_part_;                   // own rows, for products
    std::vector<double> slice_sums_;                // one a slice of this PE
    std::vector<double> first_sums_, second_sums_;  // one a slice of every PE

  private:
    long begin_of_block(long block) const {
        const Range all = layout_.all_blocks();
        return block == all.end ? layout_.whole() : layout_.blocks()[static_cast<size_t>(block)].position;
    }

    void finish_step(int thread) {
        multiply(thread, layout_.all_slices(), z_, rows_part_.data());
        for_slices(thread, [&](size_t slice, const Range& rows, long place) {
            slice_sums_[slice] = distance(&x_[static_cast<size_t>(place)], &rows_part_[static_cast<size_t>(rows.begin)],
                                          rows.end - rows.begin);
        });
        for_blocks(thread, [&](const Block& block) {
            second_sums_[sum_of(block)] =
                dot(&x_[static_cast<size_t>(block.position)], z_ + block.position, block.length);
        });
        const double length = std::sqrt(whole_dot(thread, z_, z_));
        if (thread == 0) {
            zeta_ = problem_.shift + 1 / total(second_sums_);
            begin_residual(own_total(slice_sums_));
        }
        const Range own = stretch_of_whole(thread);
        scale(&x_[static_cast<size_t>(own.begin)], 1 / length, z_ + own.begin, own.end - own.begin);
        job_.team().barrier();
    }

    Untouched<int32_t> columns_;  // places in whole vectors
    double zeta_ = 0, residual_ = 0, wait_s_ = 0;
    bool exchanged_ = false;
};

}  // namespace shmem_mt
