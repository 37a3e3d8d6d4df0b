// A matrix product whose result goes out to all PEs piece by piece while the rest is computed, and the sum of residuals
// behind the next step: what the forms of CG with non-blocking collectives share.
//
// A thread waits only for the last piece, and for earlier pieces that a slow link has not carried yet. The product is
// sent, not the next vector to multiply with. Every PE computes that vector, and the inner products on the way, for
// whole vectors itself, which costs little beside the matrix.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "apps/cg/solver.hpp"
#include "apps/common/nonblocking_collectives.hpp"

#if SHMEM_MT_HAVE_PROGRESS
namespace shmem_mt {

class CgOverlapped : public CgSolver {
  protected:
    // Collective.
    CgOverlapped(Job& job, const CgClass& problem, const SparseMatrix& matrix)
        : CgSolver(job, problem, CgLayout(problem.n, job.n_pes(), job.me(), pieces(job, problem)), matrix),
          requests_(static_cast<size_t>(layout_.pieces()), SHMEMX_REQUEST_NULL),
          finished_(std::make_unique<std::atomic<long>[]>(requests_.size())) {
        for (size_t piece = 0; piece < requests_.size(); ++piece) finished_[piece].store(0, std::memory_order_relaxed);
        for (double*& whole : products_) whole = symmetric_vector(layout_.whole());
        own_product_ = symmetric_vector(layout_.rows());
        own_z_ = symmetric_vector(layout_.rows());
    }

    // A x into own_product_, and from there into `whole` of every PE, in pieces; see arrive(). No PE may still need
    // `whole`: products_ take turns, and no PE sends the next but one before all have received the next.
    void multiply_and_send(int thread, const double* x, double* whole) {
        if (thread == 0) {
            begin_send(own_product_, whole);
            ++rounds_;
        }
        for (long piece = 0; piece < layout_.pieces(); ++piece) {
            multiply(thread, layout_.slices_of(piece), x, own_product_);
            finished_[static_cast<size_t>(piece)].fetch_add(1, std::memory_order_release);  // pairs with finished()
            while (thread == 0 && sent_ < layout_.pieces() && finished(sent_)) send_next();
        }
        job_.team().barrier();
        if (thread == 0)
            send_rest();
    }

    // Thread 0. The rows at `own` must not change until they have arrived.
    void begin_send(const double* own, double* whole) {
        source_ = own;
        dest_ = whole;
        sent_ = 0;
    }
    void send_rest() {
        while (sent_ < layout_.pieces()) send_next();
    }

    // Returns when everybody's part of the piece is there. A barrier.
    void arrive(int thread, long piece) {
        if (thread == 0)
            waiting([&] { shmemx_request_wait(&requests_[static_cast<size_t>(piece)]); });
        job_.team().barrier();
    }

    void poll() override { poll_progress(); }

    void begin_residual(double own) override {
        finish_residual();
        sum_.post({own});
    }
    double finish_residual() override {
        return *waiting([&] { return sum_.wait(); });
    }

    NonblockingSum sum_;
    double* products_[2] = {};       // whole, symmetric
    double* own_product_ = nullptr;  // own rows, symmetric
    double* own_z_ = nullptr;        // own rows, symmetric

  private:
    // One where the PEs store into each other's memory: the exchange is a copy then, with nothing to wait for. Else as
    // few as are 16 KiB at most, which networks send at once, without asking the receiver. Collective.
    static long pieces(Job& job, const CgClass& problem) {
        constexpr long kMostRows = 16384 / sizeof(double);
        if (job.options().pieces > 0)
            return job.options().pieces;
        Report mine;
        for (int pe = 0; pe < job.n_pes(); ++pe) mine.ok = mine.ok && shmem_ptr(job.control(), pe) != nullptr;
        return job.agree(mine).ok ? 1 : problem.n / job.n_pes() / kMostRows + 1;
    }

    // Whether all threads have.
    bool finished(long piece) const {
        return finished_[static_cast<size_t>(piece)].load(std::memory_order_acquire) ==  // pairs with multiply_and_send
               rounds_ * job_.threads();
    }

    void send_next() {
        const Range rows = layout_.rows_of_piece(sent_);
        const size_t nelems = told(rows.end - rows.begin);
        double* const dest = dest_ + layout_.pes() * rows.begin;
        const shmem_team_t team = teams_[sent_ % kTeams].get();
        shmemx_request_t* const request = &requests_[static_cast<size_t>(sent_++)];
        if (nelems > 0 && shmemx_double_fcollect_nbe(team, dest, source_ + rows.begin, nelems, request) != 0)
            fail("shmemx_double_fcollect_nbe failed");
    }

    static constexpr long kTeams = 2;  // a piece is on its way while the next one begins

    // Thread 0's, but finished_.
    TeamOfAll teams_[kTeams];
    std::vector<shmemx_request_t> requests_;         // one a piece
    std::unique_ptr<std::atomic<long>[]> finished_;  // one a piece: how many threads have, in all rounds together
    long rounds_ = 0;
    const double* source_ = nullptr;
    double* dest_ = nullptr;
    long sent_ = 0;
};

}  // namespace shmem_mt
#endif
