// The collective of the patterns: the sum of the vectors of all threads of all PEs, to all of them. The threads of a PE
// add their vectors up, each a part of the elements, and the PEs do the rest:
//   blocking      one thread calls shmem_double_sum_reduce
//   request_wait  one thread posts it (shmemx.h), and waits
//   all_threads   all threads call it together (shmemx.h)
// It is over when all threads know that it is.
#pragma once

#include <algorithm>
#include <vector>

#include "programs/common/job.hpp"
#include "programs/common/measure.hpp"
#include "programs/common/run_together.hpp"
#include "programs/patterns/ways.hpp"

namespace shmem_mt {

#if SHMEM_MT_HAVE_TEAM_COLLECTIVES
class SumOfAll {
  public:
    // source, dest: symmetric, each with room for the vector and a word.
    SumOfAll(Job& job, double* source, double* dest, Sync sync, long size_bytes)
        : job_(job),
          sync_(sync),
          nelems_(std::max(1L, size_bytes / 8)),
          source_(source),
          dest_(dest),
          vectors_(static_cast<size_t>(job.threads()), std::vector<double>(static_cast<size_t>(nelems_))) {}

    // What a PE must at least copy.
    long bytes() const { return 8 * nelems_; }

    // `count` sums; then the first and the last element of the last one are right. Collective.
    Report sample(long count) {
        const long token = job_.next_token();
        for (const long element : {0L, nelems_ - 1}) {
            for (int thread = 0; thread < job_.threads(); ++thread)
                own(thread, element) = value(job_.me(), thread, token, element);
            dest_[element] = kWrong;
        }
        return run(count, [&] { return is_sum(0, token) && is_sum(nelems_ - 1, token); });
    }

    // Each round has other values; compares all elements, and the one behind their end. Collective.
    Agreed validate() {
        Checker checker(job_.options().fault);
        validating_ = true;
        for (round_ = 0; round_ < 10; ++round_) {
            const long token = job_.next_token();
            for (int thread = 0; thread < job_.threads(); ++thread) {
                for (long element = 0; element < nelems_; ++element)
                    own(thread, element) = value(job_.me(), thread, token, element);
            }
            std::fill(dest_, dest_ + nelems_ + 1, kWrong);
            run(round_ < 8 ? 1 : round_ - 6, [] { return true; });
            for (long element = 0; element < nelems_; ++element) {
                const double right = sum(token, element);
                checker.compare(dest_ + element, &right, 8);
            }
            checker.compare(dest_ + nelems_, &kWrong, 8);
            shmem_barrier_all();
        }
        validating_ = false;
        return agree_verdict(job_, checker);
    }

  private:
    static constexpr double kWrong = -1;

    double& own(int thread, long element) {
        return vectors_[static_cast<size_t>(thread)][static_cast<size_t>(element)];
    }

    // A whole number, so that all orders of adding make the same sum.
    static double value(int pe, int thread, long token, long element) {
        return static_cast<double>(pattern_word(make_base(pe, thread, token), 0, element) >> 32);
    }

    double sum(long token, long element) const {
        double all = 0;
        for (int pe = 0; pe < job_.n_pes(); ++pe) {
            for (int thread = 0; thread < job_.threads(); ++thread) all += value(pe, thread, token, element);
        }
        return all;
    }

    bool is_sum(long element, long token) const { return dest_[element] == sum(token, element); }

    template <class Look>
    Report run(long count, Look&& look) {
        const Fault fault = job_.options().fault;
        const bool none = fault == Fault::kSkippedOperation || (fault == Fault::kStaleResult && round_ > 0) ||
                          (fault == Fault::kIdleTimedPass && !validating_);
        const size_t elements = static_cast<size_t>(nelems_ - (fault == Fault::kLastElementMissing));
        return run_together(
            job_,
            [&](int thread) {
                for (long i = 0; i < count && !none; ++i) {
                    const bool idle = job_.idles(thread) && !validating_;
                    add_up(thread, idle);
                    job_.team().barrier();
                    reduce(thread, elements);
                    job_.team().barrier();
                }
            },
            look);
    }

    // This thread's part of the elements of the PE's sum.
    void add_up(int thread, bool idle) {
        const long threads = job_.threads(), part = (nelems_ + threads - 1) / threads;
        const long first = std::min(nelems_, thread * part), end = idle ? first : std::min(nelems_, first + part);
        std::copy(vectors_[0].begin() + first, vectors_[0].begin() + end, source_ + first);
        for (size_t other = 1; other < vectors_.size(); ++other) {
            const double* const theirs = vectors_[other].data();
            for (long element = first; element < end; ++element) source_[element] += theirs[element];
        }
    }

    void reduce(int thread, size_t elements) {
#if SHMEM_MT_HAVE_SHMEMX
        if (sync_ == Sync::kAllThreads)
            shmemx_double_sum_reduce_mt(SHMEM_TEAM_WORLD, dest_, source_, elements, thread, job_.threads());
#endif
#if SHMEM_MT_HAVE_PROGRESS
        if (sync_ == Sync::kRequestWait && thread == 0) {
            shmemx_request_t request = SHMEMX_REQUEST_NULL;
            shmemx_double_sum_reduce_nbe(SHMEM_TEAM_WORLD, dest_, source_, elements, &request);
            shmemx_request_wait(&request);
        }
#endif
        if (sync_ == Sync::kBlocking && thread == 0)
            shmem_double_sum_reduce(SHMEM_TEAM_WORLD, dest_, source_, elements);
    }

    Job& job_;
    const Sync sync_;
    const long nelems_;
    double* const source_;
    double* const dest_;
    std::vector<std::vector<double>> vectors_;  // of each thread
    int round_ = 0;
    bool validating_ = false;
};
#else
class SumOfAll {
  public:
    SumOfAll(Job&, double*, double*, Sync, long) {}
    long bytes() const { return 0; }
    Report sample(long) { return {}; }
    Agreed validate() { return {}; }
};
#endif

}  // namespace shmem_mt
