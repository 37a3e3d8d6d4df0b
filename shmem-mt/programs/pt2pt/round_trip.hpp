// Ping-pong between partners, thread with thread. The receiver knows in three ways that the message is there:
//   last_word   8 bytes: the message is the flag (one element arrives whole)
//   fence_flag  any size: put, fence, flag. A wait for the last word of a longer put would be wrong: OpenSHMEM promises
//               no order among the bytes of one put
//   put_signal  any size: put with signal (OpenSHMEM 1.5)
// The figure is the whole round trip. In the validating pass both sides check the bytes of every message.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "programs/common/run_together.hpp"
#include "programs/common/transfer_points.hpp"

namespace shmem_mt {

enum class Ping { kLastWord, kFenceFlag, kPutSignal };

class RoundTrip {
  public:
    // Symmetric, one a thread: where the partner's messages and flags arrive.
    struct Mailbox {
        alignas(64) long flag;
        alignas(64) uint64_t signal;
    };

    RoundTrip(Job& job, TransferMemory& memory, Mailbox* boxes, Ping ping, Route route, long size_bytes)
        : job_(job), memory_(memory), boxes_(boxes), ping_(ping), route_(route), size_(size_bytes) {
        for (int t = 0; t < job.threads(); ++t) boxes[t] = Mailbox{};
        next_.assign(static_cast<size_t>(job.threads()), 1);
        shmem_barrier_all();
    }

    // `count` round trips a thread. Collective.
    Report sample(long count) { return run(count, nullptr); }

    Agreed validate() {
        Checker checker(job_.options().fault);
        std::vector<Checker> checkers(static_cast<size_t>(job_.threads()), checker);
        const Report report = run(16, &checkers);
        for (const Checker& one : checkers) checker.add(one);
        if (!report.ok)
            checker.compare_word(0, 1);
        return agree_verdict(job_, checker);
    }

  private:
    long region() const { return (size_ + 4095) / 4096 * 4096; }
    char* inbox(int thread) { return memory_.window(true) + thread * region(); }
    char* outbox(int thread) { return memory_.local() + thread * region(); }

    Report run(long count, std::vector<Checker>* checkers) {
        Report report = run_together(
            job_,
            [&](int thread) {
                job_.with_link(route_, thread, [&](const auto& link) {
                    if (ping_ == Ping::kLastWord)
                        loop<Ping::kLastWord>(link, thread, count, checkers);
                    if (ping_ == Ping::kFenceFlag)
                        loop<Ping::kFenceFlag>(link, thread, count, checkers);
                    if (ping_ == Ping::kPutSignal)
                        loop<Ping::kPutSignal>(link, thread, count, checkers);
                });
                next_[static_cast<size_t>(thread)] += count;
            },
            [] { return true; });
        if (!job_.is_sender())
            report.seconds = 0;
        return report;
    }

    template <Ping ping, class Link>
    void loop(const Link& link, int thread, long count, std::vector<Checker>* checkers) {
        Mailbox& box = boxes_[thread];
        const long end = next_[static_cast<size_t>(thread)] + count;
        const bool first = job_.is_sender();
        const int pe = job_.partner();
        for (long seq = end - count; seq < end; ++seq) {
            if (first)
                send<ping>(link, thread, box, seq, pe, checkers != nullptr);
            await<ping>(box, seq);
            if (checkers)
                check<ping>((*checkers)[static_cast<size_t>(thread)], thread, box, seq, pe);
            if (!first)
                send<ping>(link, thread, box, seq, pe, checkers != nullptr);
        }
        link.quiet();
    }

    template <Ping ping, class Link>
    void send(const Link& link, int thread, Mailbox& box, long seq, int pe, bool fill) {
        const size_t bytes = static_cast<size_t>(size_);
        if (fill)
            fill_slot(outbox(thread), make_base(job_.me(), thread, seq), 0, size_);
        const int data_pe = job_.message_pe() == job_.partner() || !job_.is_sender() ? pe : job_.message_pe();
        if constexpr (ping == Ping::kLastWord) {
            link.p(&box.flag, seq, pe);
        } else if constexpr (ping == Ping::kFenceFlag) {
            link.put(inbox(thread), outbox(thread), bytes, data_pe);
            link.fence();
            link.p(&box.flag, seq, pe);
        } else {
#if SHMEM_MT_HAVE_PUT_SIGNAL
            link.put_signal(inbox(thread), outbox(thread), bytes, &box.signal, static_cast<uint64_t>(seq), pe);
#endif
        }
    }

    template <Ping ping>
    static void await(Mailbox& box, long seq) {
        if constexpr (ping == Ping::kPutSignal) {
#if SHMEM_MT_HAVE_PUT_SIGNAL
            shmem_signal_wait_until(&box.signal, SHMEM_CMP_EQ, static_cast<uint64_t>(seq));
#endif
        } else {
            shmem_long_wait_until(&box.flag, SHMEM_CMP_EQ, seq);
        }
    }

    template <Ping ping>
    void check(Checker& checker, int thread, const Mailbox& box, long seq, int pe) {
        if constexpr (ping == Ping::kLastWord) {
            checker.compare_word(__atomic_load_n(&box.flag, __ATOMIC_ACQUIRE), seq);
        } else {
            checker.compare_slot(inbox(thread), make_base(pe, thread, seq), 0, size_);
        }
    }

    Job& job_;
    TransferMemory& memory_;
    Mailbox* boxes_;
    const Ping ping_;
    const Route route_;
    const long size_;
    std::vector<long> next_;  // by thread
};

}  // namespace shmem_mt
