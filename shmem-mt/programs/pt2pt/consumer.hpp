// Messages that the target reads: a stream of 8-byte sequence numbers through a ring, each read in order by a core of
// the target, with credits so that no message is overwritten unread.
//
//     sender    ring[seq % slots] = seq            at most `slots` ahead of the credit
//               batch > 1: after each batch, fence and flag = seq
//     target    batch 1: waits for each slot to hold the next number
//               batch > 1: waits for the flag, then reads all messages up to it
//               compares every message with the number expected; returns credit every slots/4 messages and at the end
//
// The clock stops when the sender has the last credit, so every message has been read by then.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "programs/common/run_together.hpp"
#include "programs/common/transfer_points.hpp"

namespace shmem_mt {

class Consumer {
  public:
    static constexpr long kSlots = 1024;  // 8 KiB of 8-byte messages: within any first-level cache

    // Symmetric, one a thread; the words that travel have a cache line each.
    struct Channel {
        alignas(4096) long ring[kSlots];
        alignas(64) long flag;
        alignas(64) long credit;
    };

    Consumer(Job& job, Channel* channels, Route route, long batch)
        : job_(job), channels_(channels), route_(route), batch_(batch) {
        for (int t = 0; t < job.threads(); ++t) std::memset(&channels[t], 0, sizeof(Channel));
        next_.assign(static_cast<size_t>(job.threads()), 1);
        wrong_.assign(next_.size(), 0);
        shmem_barrier_all();
    }

    // Sends `count` messages a thread; all have been read when it returns. Collective.
    Report sample(long count) {
        const Report report = run_together(
            job_,
            [&](int thread) {
                const size_t index = static_cast<size_t>(thread);
                const long first = next_[index];
                if (job_.is_sender()) {
                    job_.with_link(route_, thread,
                                   [&](const auto& link) { send(link, channels_[index], first, first + count); });
                } else {
                    wrong_[index] += consume(channels_[index], first, first + count);
                }
                next_[index] = first + count;
            },
            [] { return true; });
        return stream_report(job_, report, wrong_);
    }

    // Two rings full and one more; afterwards the ring must hold exactly the last numbers. Collective.
    Agreed validate() {
        const long count = 2 * kSlots + 1;
        const Report report = sample(count);
        Checker checker(job_.options().fault);
        if (!job_.is_sender()) {
            for (int t = 0; t < job_.threads(); ++t) {
                const long last = next_[static_cast<size_t>(t)] - 1;
                for (long seq = last - kSlots + 1; seq <= last; ++seq)
                    checker.compare_word(channels_[t].ring[seq % kSlots], seq);
            }
        }
        if (!report.ok)
            checker.compare_word(0, 1);
        return agree_verdict(job_, checker);
    }

  private:
    template <class Link>
    void send(const Link& link, Channel& channel, long first, long end) {
        const int pe = job_.partner();
        const int data_pe = batch_ > 1 ? job_.message_pe() : pe;  // a message that is its own flag must come
        const long batch = batch_;
        long credit = first - 1;  // the target has read up to here
        for (long seq = first; seq < end;) {
            if (seq - credit > kSlots) {
                shmem_long_wait_until(&channel.credit, SHMEM_CMP_GE, seq - kSlots);
            }
            credit = std::max(credit, __atomic_load_n(&channel.credit, __ATOMIC_ACQUIRE));
            const long room = std::min(end, credit + kSlots + 1);
            while (seq < room) {
                const long stop = batch == 1 ? room : std::min(room, seq + batch);
                for (; seq < stop; ++seq) link.p(&channel.ring[seq & (kSlots - 1)], seq, data_pe);
                if (batch == 1)
                    continue;
                link.fence();
                link.p(&channel.flag, seq - 1, pe);
            }
        }
        link.quiet();
        shmem_long_wait_until(&channel.credit, SHMEM_CMP_GE, end - 1);
    }

    // Returns how many messages were not the ones expected.
    long consume(Channel& channel, long first, long end) {
        const int pe = job_.partner();
        long wrong = 0;
        long ready = first - 1;
        long owed = first - 1 + kSlots / 4;
        for (long seq = first; seq < end;) {
            if (batch_ == 1) {
                await(&channel.ring[seq & (kSlots - 1)], SHMEM_CMP_EQ, seq);
                ready = seq;
            } else {
                ready = await(&channel.flag, SHMEM_CMP_GE, seq);
            }
            while (seq <= ready) {
                const long stop = std::min(ready, owed);
                for (; seq <= stop; ++seq)
                    wrong += __atomic_load_n(&channel.ring[seq & (kSlots - 1)], __ATOMIC_RELAXED) != seq;
                if (seq <= owed)
                    continue;
                shmem_long_p(&channel.credit, owed, pe);
                owed += kSlots / 4;
            }
        }
        shmem_long_p(&channel.credit, end - 1, pe);
        shmem_quiet();
        return wrong;
    }

    // A load first, so that a message that is already here costs no call; the library's wait otherwise.
    static long await(long* word, int comparison, long value) {
        long seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);
        if (comparison == SHMEM_CMP_EQ ? seen == value : seen >= value)
            return seen;
        shmem_long_wait_until(word, comparison, value);
        return __atomic_load_n(word, __ATOMIC_ACQUIRE);
    }

    Job& job_;
    Channel* channels_;
    const Route route_;
    const long batch_;
    std::vector<long> next_;   // by thread: the next sequence number; all PEs agree on it
    std::vector<long> wrong_;  // by thread: messages that were not the ones expected
};

}  // namespace shmem_mt
