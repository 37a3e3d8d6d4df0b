// Ping-pong between the PEs of a pair through another interface than OpenSHMEM's, thread with thread. Each message has
// a number at both ends; the receiver loads all its lines and compares the number before it answers. In the validating
// pass both sides compare all bytes. A class for each interface sends and waits.
#pragma once

#include <functional>
#include <vector>

#include "programs/pt2pt/peer_transfer.hpp"

namespace shmem_mt {

class PeerRoundTrip {
  public:
    PeerRoundTrip(Session& session, long size_bytes) : session_(session), size_(size_bytes) {
        next_.assign(static_cast<size_t>(session.threads()), first_number(session.next_token()));
        wrong_.assign(next_.size(), 0);
    }
    virtual ~PeerRoundTrip() = default;
    PeerRoundTrip(const PeerRoundTrip&) = delete;
    PeerRoundTrip& operator=(const PeerRoundTrip&) = delete;

    // `count` round trips a thread. With histograms the sender stamps each. Collective.
    Report sample(long count, std::vector<Histogram>* histograms = nullptr) { return run(count, nullptr, histograms); }

    Agreed validate() {
        return validate_threads(session_, [&](std::vector<Checker>& checkers) { return run(16, &checkers, nullptr); });
    }

  protected:
    // Where a thread's messages leave, and where they have arrived when await has returned.
    virtual char* outbox(int thread) = 0;
    virtual char* inbox(int thread) = 0;

    // Opens and closes what a row of round trips wants.
    virtual void open(int) {}
    virtual void close(int) {}

    // Sends the outbox; returns when it may be written again. Waits for the partner's.
    virtual void send(int thread) = 0;
    virtual void await(int thread) = 0;

    Session& session_;
    const long size_;

  private:
    Report run(long count, std::vector<Checker>* checkers, std::vector<Histogram>* histograms) {
        Report report = run_together(
            session_,
            [&](int thread) {
                Marks marks(session_.is_sender() ? histograms : nullptr, thread);
                loop(thread, count, checkers ? &(*checkers)[static_cast<size_t>(thread)] : nullptr, marks);
            },
            [] { return true; });
        report.ok = none_wrong(wrong_);
        if (!session_.is_sender())
            report.seconds = 0;
        return report;
    }

    void loop(int thread, long count, Checker* checker, Marks& marks) {
        const size_t i = static_cast<size_t>(thread);
        const long end = next_[i] + count;
        const bool idle = session_.idles(thread) && checker == nullptr;
        open(thread);
        for (long number = idle ? end : end - count; number < end; ++number) {
            if (session_.is_sender())
                write_and_send(thread, number, checker != nullptr);
            await(thread);
            look(thread, number, checker);
            if (!session_.is_sender())
                write_and_send(thread, number, checker != nullptr);
            marks.mark();
        }
        close(thread);
        if (checker == nullptr)
            wrong_[i] += !has_stamp(inbox(thread), size_, static_cast<uint64_t>(end - 1));
        next_[i] = end;
    }

    // A planted fault has a message go without what belongs into it: one that did not go would end in a hang.
    void write_and_send(int thread, long number, bool fills) {
        if (!goes_astray(session_) && !is_lost(session_, number)) {
            if (fills)
                fill_slot(outbox(thread), make_base(session_.me(), thread, number), 0, size_);
            else
                stamp(outbox(thread), size_, static_cast<uint64_t>(number));
        }
        send(thread);
    }

    void look(int thread, long number, Checker* checker) {
        if (checker != nullptr) {
            checker->compare_slot(inbox(thread), make_base(session_.partner(), thread, number), 0, size_);
            return;
        }
        read_lines(inbox(thread), size_);
        wrong_[static_cast<size_t>(thread)] += !has_stamp(inbox(thread), size_, static_cast<uint64_t>(number));
    }

    std::vector<long> next_;   // by thread
    std::vector<long> wrong_;  // by thread: messages of timed passes that were not the ones expected
};

}  // namespace shmem_mt
