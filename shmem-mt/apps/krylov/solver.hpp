// Conjugate gradients for A x = b from x = 0, a fixed number of iterations, as all forms share them: each thread's
// rows, products that poll, sums in a fixed order, and the phases of thread 0.
//
// All threads of a PE run through the same calls, and a thread has the same rows in all of them but products that hide
// the exchange: there the threads share the rows without ghosts, then those with some, alike. So a barrier is needed
// only where an exchange sends, or a thread reads, what another thread has written. A PE's rows are cut into slices; an
// inner product is the sum of the slices' sums in their order, whatever the number of threads. A thread has written first
// to its rows of the matrix and of the vectors.
#pragma once

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <vector>

#include "apps/common/largest.hpp"
#include "apps/common/polling_product.hpp"
#include "apps/common/slices.hpp"
#include "apps/common/untouched.hpp"
#include "apps/common/vector_kernels.hpp"
#include "apps/krylov/halo.hpp"
#include "apps/krylov/row_slices.hpp"
#include "apps/krylov/settled.hpp"
#include "apps/krylov/system.hpp"
#include "programs/common/clock.hpp"
#include "programs/common/job.hpp"

namespace shmem_mt {

// Seconds of thread 0.
struct KrylovSeconds {
    double exchange = 0;  // packing and sending ghosts, and waiting for them
    double sum = 0;       // posting sums over all PEs and waiting for them
    double product = 0;   // polls included
    double vectors = 0;   // inner products and updates of the own rows
};

class KrylovSolver {
  public:
    KrylovSolver(Job& job, const KrylovSystem& system, KrylovHalo& halo)
        : job_(job),
          system_(system),
          product_(job, system.matrix()),
          slices_(system.rows()),
          slice_sums_(static_cast<size_t>(slices_.count())),
          x_(own()),
          r_(with_ghosts()),
          halo_(halo) {
        touch({&x_, &r_});
        for (int thread = 0; thread < job.threads(); ++thread) {
            own_rows_.push_back({slices_.of_thread(thread, job.threads())});
            interior_.push_back(share_of(system.interior(), thread, job.threads()));
            boundary_.push_back(share_of(system.boundary(), thread, job.threads()));
        }
    }

    virtual ~KrylovSolver() = default;
    KrylovSolver(const KrylovSolver&) = delete;
    KrylovSolver& operator=(const KrylovSolver&) = delete;

    // All threads of all PEs; `b` has the own rows. No barrier is needed before, and all threads are past one behind.
    void solve(int thread, const double* b, int iterations) {
        if (thread == 0) {
            norms_.clear();
            norms_.reserve(static_cast<size_t>(iterations) + 1);
        }
        iterate(thread, b, iterations);
        job_.team().barrier();
    }

    // Polls after so many rows of products; 0: never.
    void set_poll_rows(long rows) { product_.set_poll_rows(rows); }

    const Untouched<double>& x() const { return x_; }            // own rows
    const std::vector<double>& norms() const { return norms_; }  // |r| before the first iteration and behind each

    // How far r has drifted from b - A x in solve(): the largest difference in a row, of all PEs. Rounding alone leads
    // there, and mistakes that leave r as it should be. Thread 0 of all PEs, no other thread at work.
    double drift(const double* b) {
        std::vector<double> x(x_.begin(), x_.end()), q(own());
        x.resize(with_ghosts());
        job_.team().run([&](int thread) { multiply_hiding(thread, x.data(), q.data()); });
        seconds_ = {};
        double most = 0;
        for (size_t row = 0; row < own(); ++row) keep_worse(&most, std::abs(b[row] - q[row] - r_[row]));
        return largest_of(job_, most);
    }

    // How much longer a product that hides the exchange takes than one that all threads share evenly: 1 is even.
    double imbalance() const {
        long interior = 0, boundary = 0;
        for (const std::vector<Range>& runs : interior_) interior = std::max(interior, length_of(runs));
        for (const std::vector<Range>& runs : boundary_) boundary = std::max(boundary, length_of(runs));
        const double even = static_cast<double>(system_.rows()) / job_.threads();
        return even > 0 ? static_cast<double>(interior + boundary) / even : 1;
    }

    // Of the exchanges from here on. Thread 0 of all PEs, no other thread at work.
    void set_sync(Sync sync) { halo_.set_sync(sync); }

    // That this PE sends in an exchange.
    long messages() const { return halo_.messages(); }

    // Bytes that an iteration touches: the matrix, and four vectors or more.
    double working_set() const {
        const double entries = static_cast<double>(system_.matrix().values.size());
        return entries * (sizeof(double) + sizeof(int32_t)) + static_cast<double>(system_.rows()) * 5 * sizeof(double);
    }

    // What has been spent since the last call.
    KrylovSeconds take_seconds() {
        const KrylovSeconds spent = seconds_;
        seconds_ = {};
        return spent;
    }

  protected:
    // Gives norms and x.
    virtual void iterate(int thread, const double* b, int iterations) = 0;

    virtual void poll() {}

    size_t own() const { return static_cast<size_t>(system_.rows()); }
    size_t with_ghosts() const { return static_cast<size_t>(system_.rows() + system_.ghosts()); }

    // Each thread writes to its own rows of these vectors first. Thread 0, no other thread at work.
    void touch(std::initializer_list<Untouched<double>*> vectors) {
        job_.team().run([&](int thread) {
            const Range rows = slices_.of_thread(thread, job_.threads());
            for (Untouched<double>* vector : vectors)
                std::fill(vector->begin() + rows.begin, vector->begin() + rows.end, 0.0);
        });
    }

    // f(slice, first row, number of rows) for the thread's share of the slices that have rows.
    template <class F>
    void for_slices(int thread, F&& f) {
        booked(thread, &seconds_.vectors, [&] {
            for_share(slices_.all(), thread, job_.threads(), [&](long slice) {
                const Range rows = slices_.rows_of(slice);
                if (rows.length() > 0)
                    f(static_cast<size_t>(slice), static_cast<size_t>(rows.begin), rows.length());
            });
        });
    }

    // q = A v for the rows that are the thread's in slices, too. The ghosts are there.
    void multiply_own(int thread, const double* v, double* q) {
        multiply(thread, own_rows_[static_cast<size_t>(thread)], v, q);
    }

    // f(), its time booked when it is thread 0's.
    template <class F>
    auto booked(int thread, double* seconds, F&& f) {
        return clocked(thread == 0 ? seconds : nullptr, f);
    }

    // As the halo's; thread 0's time counts as exchange.
    void send(int thread, const double* v) {
        booked(thread, &seconds_.exchange, [&] { halo_.send(thread, v); });
    }
    void receive(int thread, double* v) {
        booked(thread, &seconds_.exchange, [&] { halo_.receive(thread, v); });
    }

    // q = A v, the exchange of v hidden behind the rows that need no ghosts. Begins behind a barrier; a barrier must
    // follow before a thread reads q, as the rows are dealt anew.
    void multiply_hiding(int thread, double* v, double* q) {
        send(thread, v);
        multiply(thread, interior_[static_cast<size_t>(thread)], v, q);
        receive(thread, v);
        job_.team().barrier();
        multiply(thread, boundary_[static_cast<size_t>(thread)], v, q);
    }

    // Takes down |r|^2; thread 0.
    void record(double rho) { norms_.push_back(std::sqrt(rho)); }

    Job& job_;
    const KrylovSystem& system_;
    PollingProduct product_;
    const RowSlices slices_;
    std::vector<double> slice_sums_;  // by slice
    Untouched<double> x_, r_;         // own rows; r_ with ghosts
    KrylovSeconds seconds_;

  private:
    static long length_of(const std::vector<Range>& runs) {
        long rows = 0;
        for (const Range& run : runs) rows += run.length();
        return rows;
    }

    // The part of one of `threads`, in the order of the rows; none has more than one row more than another.
    static std::vector<Range> share_of(const std::vector<Range>& runs, int thread, int threads) {
        const Range mine = Range{0, length_of(runs)}.share(thread, threads);
        std::vector<Range> found;
        long before = 0;  // rows of earlier runs
        for (const Range& run : runs) {
            const Range part{std::max(run.begin, run.begin + mine.begin - before),
                             std::min(run.end, run.begin + mine.end - before)};
            if (part.length() > 0)
                found.push_back(part);
            before += run.length();
        }
        return found;
    }

    void multiply(int thread, const std::vector<Range>& runs, const double* v, double* q) {
        booked(thread, &seconds_.product, [&] {
            for (const Range& run : runs)
                product_.multiply(thread, run, system_.matrix().columns.data(), v, q, [&] { poll(); });
        });
    }

    KrylovHalo& halo_;
    std::vector<std::vector<Range>> own_rows_, interior_, boundary_;  // by thread
    std::vector<double> norms_;
};

}  // namespace shmem_mt
