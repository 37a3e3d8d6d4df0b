// What a read or an atomic operation costs by who had the line (params.owner):
//   handed-over    a core of the target has written every line just before: what a program feels whose PEs share data
//   contended      a core of the target updates the word all the time, and so do all threads of the caller's PE
//   false-sharing  as contended, but all threads of both PEs have words of their own, in one line
// (warm, where nobody else touches the line, is a Transfer of one slot.)
//
// Handed over, in batches of kSlots objects:
//     target    writes each object, and into its first word the number of the one to be read next; fence, flag
//     caller    waits for the flag; starts the clock; follows the chain, so that no operation can begin before the one
//               before it has its result; stops the clock; compares the sum of all it has read; flag
//     target    finds each word of an atomic update increased once
// Each timed operation is checked, so there is no pass that is only timed.
#pragma once

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "programs/common/clock.hpp"
#include "programs/common/payload.hpp"
#include "programs/common/run_together.hpp"
#include "programs/common/transfer_points.hpp"
#include "programs/pt2pt/round_trip.hpp"

namespace shmem_mt {

class HandedOver {
  public:
    static constexpr long kSlots = 64;

    // Two lines at least: a prefetcher that fetches pairs of lines would bring the next object.
    static long stride_of(long size_bytes) {
        return (size_bytes + 2 * kLineBytes - 1) / (2 * kLineBytes) * 2 * kLineBytes;
    }
    static long slots_of(long size_bytes) {
        long slots = kSlots;
        while (slots > 4 && slots * size_bytes > (1L << 20)) slots /= 2;
        return slots;
    }
    static long region_bytes(long size_bytes) {
        return (slots_of(size_bytes) * stride_of(size_bytes) + 4095) / 4096 * 4096;
    }

    // `boxes` have one for each thread. Collective.
    HandedOver(Job& job, TransferMemory& memory, RoundTrip::Mailbox* boxes, Op op, Route route, long size_bytes)
        : job_(job),
          memory_(memory),
          boxes_(boxes),
          op_(op),
          route_(route),
          size_(op == Op::kGet ? size_bytes : 8),
          slots_(slots_of(size_)),
          stride_(stride_of(size_)),
          region_(region_bytes(size_)) {
        for (int t = 0; t < job.threads(); ++t) boxes[t] = RoundTrip::Mailbox{};
        batch_.assign(static_cast<size_t>(job.threads()), job.next_token() << 20);
        wrong_.assign(batch_.size(), 0);
        seconds_.assign(batch_.size(), 0);
        shmem_barrier_all();
    }

    // About `count` operations a thread; the time is that of `count`. With histograms each operation is stamped into its
    // thread's. Collective.
    Report sample(long count, std::vector<Histogram>* histograms = nullptr) { return run(count, nullptr, histograms); }

    Agreed validate() {
        return validate_threads(job_, [&](std::vector<Checker>& checkers) { return run(3 * slots_, &checkers); });
    }

  private:
    static constexpr long kUpdate = 1L << 48;  // what an atomic update adds: above the number of the next object
    static constexpr long kBatch = 1L << 16;

    long next_of(long slot) const { return (5 * slot + 3) & (slots_ - 1); }  // one cycle through all slots
    long value_of(long slot, long batch) const { return (batch & 0xffffffffL) * kBatch | next_of(slot); }
    char* object(int thread, long slot) { return memory_.window(true) + thread * region_ + slot * stride_; }

    Report run(long count, std::vector<Checker>* checkers, std::vector<Histogram>* histograms = nullptr) {
        const long batches = (count + slots_ - 1) / slots_;
        Report report = run_together(
            job_,
            [&](int thread) {
                const size_t index = static_cast<size_t>(thread);
                seconds_[index] = 0;
                for (long i = 0; i < batches; ++i) {
                    const long batch = ++batch_[index];
                    if (job_.is_sender()) {
                        job_.with_link(route_, thread, [&](const auto& link) {
                            follow(link, thread, batch, checkers ? &(*checkers)[index] : nullptr, histograms);
                        });
                    } else {
                        hand_over(thread, batch);
                    }
                }
            },
            [] { return true; });
        report.ok = none_wrong(wrong_);
        report.seconds = 0;
        if (job_.is_sender()) {
            const double scale = static_cast<double>(count) / static_cast<double>(batches * slots_);
            report.seconds = scale * *std::max_element(seconds_.begin(), seconds_.end());
        }
        return report;
    }

    // Target: writes the objects, waits until they have been used, looks at what became of them.
    void hand_over(int thread, long batch) {
        for (long slot = 0; slot < slots_; ++slot) {
            auto* words = reinterpret_cast<long*>(object(thread, slot));
            for (long word = 0; word < size_ / 8; ++word)
                __atomic_store_n(words + word, value_of(slot, batch), __ATOMIC_RELAXED);
        }
        std::atomic_thread_fence(std::memory_order_seq_cst);
        shmem_fence();
        shmem_long_p(&boxes_[thread].flag, batch, job_.partner());
        shmem_long_wait_until(&boxes_[thread].flag, SHMEM_CMP_EQ, batch);
        const long added = op_is_atomic_update(op_) ? kUpdate : 0;
        for (long slot = 0; slot < slots_; ++slot) {
            const auto* word = reinterpret_cast<const long*>(object(thread, slot));
            wrong_[static_cast<size_t>(thread)] +=
                __atomic_load_n(word, __ATOMIC_ACQUIRE) != value_of(slot, batch) + added;
        }
    }

    // Caller: uses each object once.
    template <class Link>
    void follow(const Link& link, int thread, long batch, Checker* checker, std::vector<Histogram>* histograms) {
        const size_t index = static_cast<size_t>(thread);
        const bool idle = job_.idles(thread) && checker == nullptr;
        char* const local = memory_.local() + thread * region_;
        shmem_long_wait_until(&boxes_[thread].flag, SHMEM_CMP_EQ, batch);
        std::memset(local, 0, static_cast<size_t>(size_));
        const double start = now_seconds();
        long sum = 0;
        Marks marks(histograms, thread);
        for (long i = 0, slot = 0; i < slots_ && !idle; ++i) {
            const long value = use(link, object(thread, slot), local, slot);
            marks.mark();
            if (checker && op_ == Op::kGet)
                check_object(*checker, local, value_of(slot, batch));
            sum += value;
            slot = value & (slots_ - 1);
        }
        seconds_[index] += std::max(least_batch_s_, now_seconds() - start - clock_cost_);
        const long expected = op_ == Op::kAdd ? slots_ * (slots_ - 1) / 2 : expected_sum(batch);
        wrong_[index] += sum != expected;
        if (checker)
            checker->compare_word(sum, expected);
        link.quiet();
        link.p(&boxes_[thread].flag, batch, job_.partner());
        link.quiet();
    }

    // One operation. Returns the value of the object; of an add, which has no result, the number of the next.
    template <class Link>
    long use(const Link& link, char* remote, char* local, long slot) {
        long* const word = reinterpret_cast<long*>(remote);
        const int pe = job_.message_pe();
        switch (op_) {
            case Op::kG:
                return link.g(word, pe);
            case Op::kFetch:
                return link.fetch(word, pe);
            case Op::kFetchAdd:
                return link.fetch_add(word, kUpdate, pe);
            case Op::kAdd:
                link.add(word, kUpdate, pe);
                link.quiet();
                return next_of(slot);
            default: {
                link.get(local, remote, static_cast<size_t>(size_), pe);
                long last = 0, value = 0;
                std::memcpy(&value, local, 8);
                std::memcpy(&last, local + size_ - 8, 8);
                return last == value ? value : 0;
            }
        }
    }

    void check_object(Checker& checker, const char* local, long value) {
        for (long at = 0; at < size_; at += 8) checker.compare(local + at, &value, 8);
    }

    long expected_sum(long batch) const {
        long sum = 0;
        for (long slot = 0; slot < slots_; ++slot) sum += value_of(slot, batch);
        return sum;
    }

    Job& job_;
    TransferMemory& memory_;
    RoundTrip::Mailbox* boxes_;
    const Op op_;
    const Route route_;
    const long size_;  // a multiple of 8
    const long slots_;
    const long stride_;  // bytes from object to object
    const long region_;  // bytes from thread to thread
    const double clock_cost_ = clock_cost();
    // Half of what measure() takes for possible: operations that do nothing are invalid, and yet fill a sample.
    const double least_batch_s_ = 0.5 * static_cast<double>(slots_) * job_.limit().least_s(0);
    std::vector<long> batch_;      // by thread: the last one
    std::vector<long> wrong_;      // by thread
    std::vector<double> seconds_;  // by thread, of the last sample
};

// All threads of a pair of PEs use one line of the target, through the library: one word of it or, where the line is
// shared falsely, words of their own. The target's threads add to their words until the caller's have done what they
// were to do. Before a caller's thread begins, the target has added to its word: no sample finds what an earlier one
// found.
class Contended {
  public:
    Contended(Job& job, TransferMemory& memory, RoundTrip::Mailbox* boxes, Op op, Route route, bool false_sharing)
        : job_(job),
          line_(reinterpret_cast<long*>(memory.window(true))),
          boxes_(boxes),
          op_(op),
          route_(route),
          false_sharing_(false_sharing) {
        for (int t = 0; t < job.threads(); ++t) boxes[t] = RoundTrip::Mailbox{};
        added_.assign(static_cast<size_t>(job.threads()), 0);
        wrong_.assign(added_.size(), 0);
        seen_.assign(added_.size(), 0);
        seconds_.assign(added_.size(), 0);
        std::fill_n(line_, kWords, 0);
        shmem_barrier_all();
    }

    // `count` operations a thread; the time is that of the slowest, from when the target has begun. Stamped as
    // HandedOver's are. Collective.
    Report sample(long count, std::vector<Histogram>* histograms = nullptr) {
        const long turn = ++turn_;
        Report report = run_together(
            job_,
            [&](int thread) {
                job_.with_link(route_, thread, [&](const auto& link) {
                    if (job_.is_sender())
                        use(link, thread, turn, count, histograms);
                    else
                        contend(link, thread, turn);
                });
            },
            [] { return true; });
        if (job_.is_sender())
            asked_ += op_is_atomic_update(op_) ? count * job_.threads() : 0;
        else
            check_total(count);
        report.ok = none_wrong(wrong_);
        report.seconds = job_.is_sender() ? *std::max_element(seconds_.begin(), seconds_.end()) : 0;
        return report;
    }

    // A sample; all samples are checked alike.
    Agreed validate() {
        Checker checker(job_.options().fault);
        const Report report = sample(1000);
        checker.compare_word(report.ok, 1);
        return agree_verdict(job_, checker);
    }

  private:
    static constexpr long kWords = kLineBytes / 8;

    // The word of a thread of the caller, or of the target; of more than four threads a PE some share theirs.
    long* word_of(int thread, bool of_target) const {
        return line_ + (false_sharing_ ? (2 * thread + of_target) % kWords : 0);
    }

    // Caller: values never fall, and the target has added since the last sample.
    template <class Link>
    void use(const Link& link, int thread, long turn, long count, std::vector<Histogram>* histograms) {
        const size_t index = static_cast<size_t>(thread);
        shmem_long_wait_until(&boxes_[thread].flag, SHMEM_CMP_EQ, turn);
        const long todo = job_.idles(thread) ? 0 : count;
        const int pe = job_.message_pe();
        long* const word = word_of(thread, false);
        long seen = seen_[index], wrong = 0;
        Marks marks(histograms, thread);
        const double start = now_seconds();
        for (long i = 0; i < todo; ++i) {
            const long before = seen;
            switch (op_) {
                case Op::kAdd:
                    link.add(word, 1, pe);
                    link.quiet();
                    break;
                case Op::kGet:
                    link.get(&seen, word, 8, pe);
                    break;
                case Op::kG:
                    seen = link.g(word, pe);
                    break;
                case Op::kFetch:
                    seen = link.fetch(word, pe);
                    break;
                default:
                    seen = link.fetch_add(word, 1, pe);
            }
            marks.mark();
            wrong += seen < before;
        }
        seconds_[index] = now_seconds() - start;
        wrong_[index] += wrong + (op_ != Op::kAdd && seen == seen_[index]);
        seen_[index] = seen;
        link.quiet();
        link.p(&boxes_[thread].flag, turn, job_.partner());
        link.quiet();
    }

    template <class Link>
    void contend(const Link& link, int thread, long turn) {
        constexpr long kAdds = 16;  // from one look at the flag to the next
        const size_t index = static_cast<size_t>(thread);
        for (bool told = false; __atomic_load_n(&boxes_[thread].flag, __ATOMIC_ACQUIRE) != turn;) {
            for (long i = 0; i < kAdds; ++i) link.add(word_of(thread, true), 1, job_.me());
            if (!told)
                link.add(word_of(thread, false), 1, job_.me());
            link.quiet();
            added_[index] += kAdds + !told;
            if (!told)
                link.p(&boxes_[thread].flag, turn, job_.partner());
            told = true;
            shmem_long_test(&boxes_[thread].flag, SHMEM_CMP_EQ, turn);  // progress
        }
    }

    // Target, when all threads of both have ended: every addition has been made once.
    void check_total(long count) {
        asked_ += op_is_atomic_update(op_) ? count * job_.threads() : 0;
        long total = asked_;
        for (const long added : added_) total += added;
        for (long word = 0; word < kWords; ++word) total -= __atomic_load_n(line_ + word, __ATOMIC_ACQUIRE);
        wrong_[0] += total != 0;
    }

    Job& job_;
    long* const line_;
    RoundTrip::Mailbox* boxes_;
    const Op op_;
    const Route route_;
    const bool false_sharing_;
    long turn_ = 0;
    long asked_ = 0;               // additions of the caller so far
    std::vector<long> added_;      // by thread of the target
    std::vector<long> wrong_;      // by thread
    std::vector<long> seen_;       // by thread of the caller: the last value
    std::vector<double> seconds_;  // by thread of the caller, of the last sample
};

}  // namespace shmem_mt
