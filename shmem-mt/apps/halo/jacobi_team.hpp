// The workers of one PE for one stencil, and what all PEs agree on. All forms of a stencil share one JacobiTeam.
#pragma once

#include <sched.h>

#include <memory>
#include <vector>

#include "apps/common/blocking_collectives.hpp"
#include "apps/halo/jacobi_exchange.hpp"

namespace shmem_mt {

struct JacobiResult {
    long iterations = 0;  // of the whole grid; asynchronous: the mean over its cells
    long rounds = 0;      // asynchronous: how often all seemed to be calm
};

class JacobiTeam {
  public:
    static constexpr long kCheckEvery = 32;    // iterations
    static constexpr long kLookEvery = 8;      // sweeps of one worker; a look costs as much as some sweeps
    static constexpr double kCalmShare = 0.5;  // of the limit, for neighbours' cells have moved since

    // Collective.
    JacobiTeam(Job& job, Stencil stencil, long edge)
        : job_(job),
          stencil_(stencil),
          edge_(edge),
          most_iterations_(8 * (edge + 1) * (edge + 1) + 1000),
          grid_(edge, job.n_pes(), job.threads()),
          mailboxes_(grid_, stencil == Stencil::k27),
          calm_(static_cast<long*>(symmetric_alloc(sizeof(long) * static_cast<size_t>(grid_.pes() * grid_.threads())))),
          stop_(static_cast<Flag*>(symmetric_alloc(sizeof(Flag)))),
          threads_(static_cast<size_t>(job.threads())) {
        job.team().run([&](int thread) {  // the thread that works on a box touches it first
            if (grid_.works({job.me(), thread}))
                threads_[static_cast<size_t>(thread)].worker =
                    std::make_unique<Worker>(job, grid_, mailboxes_, stencil, edge, thread);
        });
    }

    long edge() const { return edge_; }
    Stencil stencil() const { return stencil_; }
    const JacobiGrid& grid() const { return grid_; }

    // f(box) for each of this PE's.
    template <class F>
    void for_boxes(F&& f) {
        for (Thread& thread : threads_) {
            if (thread.worker != nullptr)
                f(thread.worker->box);
        }
    }

    JacobiExchange::Seconds take_seconds() {
        JacobiExchange::Seconds seconds = threads_[0].worker ? threads_[0].worker->exchange.take_seconds() : kNone;
        seconds.exchange += agreeing_seconds_;
        agreeing_seconds_ = 0;
        return seconds;
    }

    // By all threads of all PEs: Jacobi's method until no cell moves beyond the limit, as a look every kCheckEvery
    // iterations finds. `overlapped`, with 7 points: the cells that need no ghosts are computed while faces travel.
    template <class Link>
    JacobiResult synchronous(const Link& link, int thread, bool overlapped) {
        Worker* const worker = threads_[static_cast<size_t>(thread)].worker.get();
        for (long iteration = 1;; ++iteration) {
            const bool look = iteration % kCheckEvery == 0;
            long moving = 0;
            if (worker != nullptr) {
                moving = overlapped ? iterate_overlapped(link, *worker, look) : iterate(link, *worker, look);
            }
            if (look && (total(thread, moving) == 0 || iteration >= most_iterations_))
                return {iteration, 0};
        }
    }

    // Jacobi's method by each worker at its own pace, with the faces that have come by then: chaotic relaxation,
    // which converges because the spectral radius of |B|, B = I - A / diagonal, is below 1 (Chazan and Miranker 1969).
    // B has no negative element here, so that |B| is B: its rows add up to 1 or, at the boundary, less, and A is
    // irreducible. Every cell is computed again and again, and every face is sent again as soon as the one before has
    // been taken out, so no old value is used for ever.
    template <class Link>
    JacobiResult asynchronous(const Link& link, int thread) {
        Thread& own = threads_[static_cast<size_t>(thread)];
        const long first = own.round;
        long sweeps = 0;
        for (;;) {
            ++own.round;
            if (own.worker != nullptr)
                sweeps += relax(link, thread, own);
            else
                await_flag(stop_, own.round);
            // All seemed to be calm, each at its own time. Whether they are shows in one iteration of all together.
            link.quiet();
            job_.meet(thread);
            if (own.worker != nullptr)
                own.worker->exchange.drain();
            job_.meet(thread);
            long moving = 0;
            if (own.worker != nullptr) {
                moving = iterate(link, *own.worker, true);
                ++sweeps;
            }
            if (total(thread, moving) == 0 || own.round - first >= most_iterations_)
                break;
        }
        const double cells = own.worker ? static_cast<double>(own.worker->box.shape().cells()) : 0;
        const double updates = total(thread, static_cast<double>(sweeps) * cells);
        const double all = static_cast<double>(edge_) * static_cast<double>(edge_) * static_cast<double>(edge_);
        return {static_cast<long>(updates / all), own.round - first};
    }

  private:
    static constexpr JacobiExchange::Seconds kNone{};

    struct Worker {
        Worker(const Job& job, const JacobiGrid& grid, const JacobiMailboxes& mailboxes, Stencil stencil, long edge,
               int thread)
            : box(stencil, edge, cells(grid, {job.me(), thread})), exchange(job, grid, mailboxes, box, thread) {}

        static std::array<Range, 3> cells(const JacobiGrid& grid, const JacobiWorker& who) {
            const Place place = grid.place(who);
            return {grid.cells(place, 0), grid.cells(place, 1), grid.cells(place, 2)};
        }

        JacobiBox box;
        JacobiExchange exchange;
    };

    struct alignas(64) Thread {
        std::unique_ptr<Worker> worker;  // null: nothing to do
        double told = 0;
        long round = 0;  // asynchronous, of all runs
    };

    long sweep(Worker& worker, bool look, double share) {
        return job_.options().fault == Fault::kSkippedComputation ? 0 : worker.box.sweep(look, share);
    }

    template <class Link>
    long iterate(const Link& link, Worker& worker, bool look) {
        worker.exchange.exchange(link, stencil_);
        return sweep(worker, look, 1);
    }

    template <class Link>
    long iterate_overlapped(const Link& link, Worker& worker, bool look) {
        const auto is_awaited = [&](int face) { return worker.exchange.has_neighbour(face); };
        const bool left_out = job_.options().fault == Fault::kSkippedComputation;
        worker.exchange.send_faces(link);
        const long moving = left_out ? 0 : worker.box.sweep_inner(look, is_awaited);
        worker.exchange.receive_faces();
        return left_out ? 0 : moving + worker.box.sweep_outer(look, is_awaited);
    }

    // Sweeps until PE 0 says that all are calm; how many.
    template <class Link>
    long relax(const Link& link, int thread, Thread& own) {
        bool watches = job_.me() == 0 && thread == 0;  // until it has told all to stop
        const long calm = 2 * own.round + 1, restless = 2 * own.round;
        long* const word = &calm_[job_.me() * grid_.threads() + thread];
        long told = 0, sweeps = 0;
        JacobiExchange& exchange = own.worker->exchange;
        exchange.all_is_taken();
        for (int next = 0; !has_flag(stop_, own.round); ++sweeps) {
            if (!exchange.receive_news(link))
                sched_yield();  // workers that have something to send may need the core
            const bool look = sweeps % kLookEvery == 0;
            const long moving = sweep(*own.worker, look, kCalmShare);
            exchange.send_if_empty(link);
            if (!look)
                continue;
            const long now = moving == 0 ? calm : restless;
            if (now != told) {
                link.fence();  // one word behind the other
                link.set(word, now, 0);
                told = now;
            }
            if (watches && all_are(calm, next)) {
                watches = false;
                for (int pe = 0; pe < job_.n_pes(); ++pe) set_flag(link, stop_, own.round, pe);
            }
        }
        return sweeps;
    }

    // Looks at one worker after the other as long as they are calm, and at all again when all were. PE 0.
    bool all_are(long calm, int& next) const {
        const int count = grid_.pes() * grid_.threads();
        while (next < count && shmem_long_test(&calm_[next], SHMEM_CMP_EQ, calm)) ++next;
        if (next < count)
            return false;
        next = 0;
        while (next < count && shmem_long_test(&calm_[next], SHMEM_CMP_EQ, calm)) ++next;
        return next == count;
    }

    // Over all threads of all PEs; exact for whole numbers.
    double total(int thread, double value) {
        threads_[static_cast<size_t>(thread)].told = value;
        job_.team().barrier();
        if (thread == 0) {
            double own = 0;
            for (const Thread& each : threads_) own += each.told;
            total_ = clocked(&agreeing_seconds_, [&] { return sums_.sum(own); });
        }
        job_.team().barrier();
        return total_;
    }

    double total(int thread, long value) { return total(thread, static_cast<double>(value)); }

    Job& job_;
    const Stencil stencil_;
    const long edge_, most_iterations_;
    const JacobiGrid grid_;
    const JacobiMailboxes mailboxes_;
    long* const calm_;  // of all workers, on PE 0: 2 * round, and 1 more when no cell of the worker moves
    Flag* const stop_;  // the last round of which PE 0 has said that all are calm
    BlockingCollectives sums_;
    std::vector<Thread> threads_;
    double total_ = 0, agreeing_seconds_ = 0;
};

}  // namespace shmem_mt
