// Puts that the target reads: a stream of messages of any size through a ring, each thread to its own.
//
//     sender    numbers each message at both ends and puts it, at most `slots` ahead of the credit; behind each half
//               of the ring, fence and flag
//     target    waits for the flag; of each message up to it, loads every cache line and compares the number; credit
//
// The clock stops when the sender has the last credit, so every message has been read by then. Beside these, the blind
// puts of a Transfer stay in the sender's cache.
#pragma once

#include <algorithm>
#include <vector>

#include "programs/common/payload.hpp"
#include "programs/common/run_together.hpp"
#include "programs/common/transfer_points.hpp"

namespace shmem_mt {

class ReadStream {
  public:
    // Symmetric, one a thread: at the target the last number sent, at the sender the last number read.
    struct Post {
        alignas(64) long word;
    };

    // `slots`: 2 or more, a power of two. The ring and its sources are TransferMemory of Transfer::region_bytes.
    ReadStream(Job& job, TransferMemory& memory, Post* posts, const TransferSpec& spec)
        : job_(job),
          memory_(memory),
          posts_(posts),
          spec_(spec),
          stride_(std::max(8L, spec.size_bytes)),
          region_(Transfer::region_bytes(spec)) {
        for (int t = 0; t < job.threads(); ++t) posts[t].word = 0;
        next_.assign(static_cast<size_t>(job.threads()), first_number(job.next_token()));
        wrong_.assign(next_.size(), 0);
        if (spec.cold && job.is_sender())
            touch_pages(memory, region_ * job.threads(), job.partner());
        shmem_barrier_all();
    }

    // Sends `count` messages a thread; all have been read when it returns. Collective.
    Report sample(long count) { return run(count, nullptr); }

    // Two rings full and one more, all bytes compared. Collective.
    Agreed validate() {
        return validate_threads(job_,
                                [&](std::vector<Checker>& checkers) { return run(2 * spec_.slots + 1, &checkers); });
    }

  private:
    long slot_of(long seq) const { return seq & (spec_.slots - 1); }
    char* slot(int thread, long seq) { return memory_.window(true) + thread * region_ + slot_of(seq) * stride_; }
    char* source(int thread, long seq) { return memory_.local() + thread * region_ + slot_of(seq) * stride_; }

    Report run(long count, std::vector<Checker>* checkers) {
        const Report report = run_together(
            job_,
            [&](int thread) {
                const size_t index = static_cast<size_t>(thread);
                const long first = next_[index], end = first + count;
                if (job_.is_sender()) {
                    job_.with_link(spec_.route, thread,
                                   [&](const auto& link) { send(link, thread, first, end, checkers != nullptr); });
                } else {
                    read(thread, first, end, checkers ? &(*checkers)[index] : nullptr);
                }
                next_[index] = end;
            },
            [] { return true; });
        return stream_report(job_, report, wrong_);
    }

    template <class Link>
    void send(const Link& link, int thread, long first, long end, bool fill) {
        const int pe = job_.partner(), data_pe = job_.message_pe();
        const bool idle = job_.idles(thread) && !fill;
        const size_t bytes = static_cast<size_t>(spec_.size_bytes);
        const long half = spec_.slots / 2;
        for (long seq = first; seq < end;) {
            if (seq - first >= spec_.slots)
                shmem_long_wait_until(&posts_[thread].word, SHMEM_CMP_GE, seq - half - 1);
            const long stop = std::min(end, seq + half);
            for (; seq < stop && !idle; ++seq) {
                char* const from = source(thread, seq);
                if (fill)
                    fill_slot(from, make_base(job_.me(), thread, seq), 0, spec_.size_bytes);
                else
                    stamp(from, spec_.size_bytes, static_cast<uint64_t>(seq));
                if (job_.options().fault == Fault::kGetNamedPut)
                    link.get(from, slot(thread, seq), bytes, data_pe);
                else
                    link.put(slot(thread, seq), from, bytes, data_pe);
            }
            seq = stop;
            link.fence();
            link.p(&posts_[thread].word, seq - 1, pe);
        }
        link.quiet();
        shmem_long_wait_until(&posts_[thread].word, SHMEM_CMP_GE, end - 1);
    }

    void read(int thread, long first, long end, Checker* checker) {
        const size_t index = static_cast<size_t>(thread);
        const long half = spec_.slots / 2;
        for (long seq = first; seq < end;) {
            const long stop = std::min(end, seq + half);
            shmem_long_wait_until(&posts_[thread].word, SHMEM_CMP_GE, stop - 1);
            for (; seq < stop; ++seq) {
                const char* const message = slot(thread, seq);
                if (checker) {
                    checker->compare_slot(message, make_base(job_.partner(), thread, seq), 0, spec_.size_bytes);
                    continue;
                }
                read_lines(message, spec_.size_bytes);
                wrong_[index] += !has_stamp(message, spec_.size_bytes, static_cast<uint64_t>(seq));
            }
            shmem_long_p(&posts_[thread].word, stop - 1, job_.partner());
        }
        shmem_quiet();
    }

    Job& job_;
    TransferMemory& memory_;
    Post* const posts_;
    const TransferSpec spec_;
    const long stride_;        // bytes from slot to slot
    const long region_;        // bytes from thread to thread
    std::vector<long> next_;   // by thread: the next number; all PEs agree on it
    std::vector<long> wrong_;  // by thread: messages that were not the ones expected
};

}  // namespace shmem_mt
