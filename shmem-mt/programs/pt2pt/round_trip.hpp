// Ping-pong between partners, thread with thread. The receiver knows in three ways that the message is there:
//   last_word   8 bytes: the message is the flag (one element arrives whole)
//   fence_flag  any size: put, fence, flag. A wait for the last word of a longer put would be wrong: OpenSHMEM promises
//               no order among the bytes of one put
//   put_signal  any size: put with signal (OpenSHMEM 1.5)
// The figure is the whole round trip. Touch and cache are axes:
//   read        the receiver loads each cache line of a message, and compares its number, before it answers
//   write-only  nobody looks at messages but the last of a sample: the lines stay in the sender's cache
//   hot, cold   messages use one slot, or rotate through more than twice the last cache, at both ends
// In the validating pass both sides check the bytes of every message.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "programs/common/payload.hpp"
#include "programs/common/run_together.hpp"
#include "programs/common/transfer_points.hpp"

namespace shmem_mt {

enum class Ping { kLastWord, kFenceFlag, kPutSignal };

struct TripSpec {
    Ping ping = Ping::kLastWord;
    Route route = Route::kDefaultContext;
    long size_bytes = 8;
    bool read = true;   // a word that is the flag is always read
    bool cold = false;  // not of last_word

    long stride() const { return (size_bytes + kLineBytes - 1) / kLineBytes * kLineBytes; }
    long slots(int threads) const { return cold ? cold_slots(stride() * threads) : 1; }
    long region_bytes(int threads) const { return (slots(threads) * stride() + 4095) / 4096 * 4096; }
};

class RoundTrip {
  public:
    // Symmetric, one a thread: where the partner's messages and flags arrive.
    struct Mailbox {
        alignas(64) long flag;
        alignas(64) uint64_t signal;
    };

    RoundTrip(Job& job, TransferMemory& memory, Mailbox* boxes, const TripSpec& spec)
        : job_(job),
          memory_(memory),
          boxes_(boxes),
          spec_(spec),
          size_(spec.size_bytes),
          stride_(spec.stride()),
          mask_(spec.slots(job.threads()) - 1),
          region_(spec.region_bytes(job.threads())) {
        for (int t = 0; t < job.threads(); ++t) boxes[t] = Mailbox{};
        next_.assign(static_cast<size_t>(job.threads()), first_number(job.next_token()));
        wrong_.assign(next_.size(), 0);
        if (spec.cold)
            touch_pages(memory, region_ * job.threads(), job.partner());
        shmem_barrier_all();
    }

    // `count` round trips a thread. With histograms the sender stamps each into its thread's. Collective.
    Report sample(long count, std::vector<Histogram>* histograms = nullptr) { return run(count, nullptr, histograms); }

    Agreed validate() {
        return validate_threads(job_, [&](std::vector<Checker>& checkers) { return run(16, &checkers); });
    }

  private:
    char* inbox(int thread, long seq) { return memory_.window(true) + thread * region_ + (seq & mask_) * stride_; }
    char* outbox(int thread, long seq) { return memory_.local() + thread * region_ + (seq & mask_) * stride_; }

    Report run(long count, std::vector<Checker>* checkers, std::vector<Histogram>* histograms = nullptr) {
        Report report = run_together(
            job_,
            [&](int thread) {
                Marks marks(job_.is_sender() ? histograms : nullptr, thread);
                job_.with_link(spec_.route, thread, [&](const auto& link) {
                    if (spec_.ping == Ping::kLastWord)
                        loop<Ping::kLastWord>(link, thread, count, checkers, marks);
                    if (spec_.ping == Ping::kFenceFlag)
                        loop<Ping::kFenceFlag>(link, thread, count, checkers, marks);
                    if (spec_.ping == Ping::kPutSignal)
                        loop<Ping::kPutSignal>(link, thread, count, checkers, marks);
                });
                next_[static_cast<size_t>(thread)] += count;
            },
            [] { return true; });
        report.ok = none_wrong(wrong_);
        if (!job_.is_sender())
            report.seconds = 0;
        return report;
    }

    template <Ping ping, class Link>
    void loop(const Link& link, int thread, long count, std::vector<Checker>* checkers, Marks& marks) {
        Mailbox& box = boxes_[thread];
        const long end = next_[static_cast<size_t>(thread)] + count;
        const bool first = job_.is_sender();
        const bool checks_each = spec_.read && checkers == nullptr && ping != Ping::kLastWord;
        const bool idle = job_.idles(thread) && checkers == nullptr;
        const int pe = job_.partner();
        long wrong = 0;
        for (long seq = idle ? end : end - count; seq < end; ++seq) {
            if (first)
                send<ping>(link, thread, box, seq, pe, checkers != nullptr);
            await<ping>(box, seq);
            if (checks_each) {
                read_lines(inbox(thread, seq), size_);
                wrong += !has_stamp(inbox(thread, seq), size_, static_cast<uint64_t>(seq));
            }
            if (checkers)
                check<ping>((*checkers)[static_cast<size_t>(thread)], thread, box, seq, pe);
            if (!first)
                send<ping>(link, thread, box, seq, pe, checkers != nullptr);
            marks.mark();
        }
        link.quiet();
        if (checkers == nullptr)
            wrong += !has_last<ping>(box, thread, end - 1);
        wrong_[static_cast<size_t>(thread)] += wrong;
    }

    // Whether the last message of a timed pass is the one with that number.
    template <Ping ping>
    bool has_last(const Mailbox& box, int thread, long seq) {
        if constexpr (ping == Ping::kLastWord)
            return __atomic_load_n(&box.flag, __ATOMIC_ACQUIRE) == seq;
        return has_stamp(inbox(thread, seq), size_, static_cast<uint64_t>(seq));
    }

    template <Ping ping, class Link>
    void send(const Link& link, int thread, Mailbox& box, long seq, int pe, bool fill) {
        const size_t bytes = static_cast<size_t>(size_);
        char* const from = outbox(thread, seq);
        char* const to = inbox(thread, seq);
        if (fill)
            fill_slot(from, make_base(job_.me(), thread, seq), 0, size_);
        else if (ping != Ping::kLastWord)
            stamp(from, size_, static_cast<uint64_t>(seq));
        if constexpr (ping == Ping::kLastWord) {
            link.p(&box.flag, seq, pe);
        } else if constexpr (ping == Ping::kFenceFlag) {
            put_data(link, to, from, bytes, pe);
            link.fence();
            link.p(&box.flag, seq, pe);
        } else {
#if SHMEM_MT_HAVE_PUT_SIGNAL
            const bool faulty = misled();
            if (faulty)
                put_data(link, to, from, bytes, pe);
            link.put_signal(to, from, faulty ? 0 : bytes, &box.signal, static_cast<uint64_t>(seq), pe);
#endif
        }
    }

    // A planted fault has the payload, but not its flag, go elsewhere. A flag that went elsewhere would end in a hang.
    bool misled() const {
        const bool elsewhere = job_.is_sender() && job_.message_pe() != job_.partner();
        return elsewhere || job_.options().fault == Fault::kGetNamedPut;
    }

    template <class Link>
    void put_data(const Link& link, void* to, void* from, size_t bytes, int pe) {
        if (job_.options().fault == Fault::kGetNamedPut)
            return link.get(from, to, bytes, pe);
        link.put(to, from, bytes, misled() ? job_.message_pe() : pe);
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
            checker.compare_slot(inbox(thread, seq), make_base(pe, thread, seq), 0, size_);
        }
    }

    Job& job_;
    TransferMemory& memory_;
    Mailbox* boxes_;
    const TripSpec spec_;
    const long size_;
    const long stride_;  // bytes from slot to slot
    const long mask_;
    const long region_;        // bytes from thread to thread
    std::vector<long> next_;   // by thread
    std::vector<long> wrong_;  // by thread: messages of timed passes that were not the ones expected
};

}  // namespace shmem_mt
