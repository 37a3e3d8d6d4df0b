// The streams and round trips of a pair with MPI: puts, gets and atomic operations on windows under each
// synchronization, and two-sided messages.
#pragma once

#include <algorithm>
#include <vector>

#include "programs/pt2pt/mpi_pairs.hpp"
#include "programs/pt2pt/peer_round_trip.hpp"
#include "programs/pt2pt/peer_transfer.hpp"

namespace shmem_mt {

constexpr int kMessageTag = 1, kToldTag = 2, kAnswerTag = 3;

class MpiTransfer final : public PeerTransfer {
  public:
    MpiTransfer(Session& session, const MpiPairs& pairs, const PeerSpec& spec, MpiSync sync)
        : PeerTransfer(session, spec), pairs_(pairs), sync_(sync), size_(static_cast<int>(spec.size_bytes)) {
        requests_.resize(static_cast<size_t>(session.threads()));
        for (auto& requests : requests_) requests.resize(static_cast<size_t>(spec.every));
    }

  protected:
    char* window(int thread) override { return pairs_.of(thread).window; }
    char* local(int thread) override { return pairs_.of(thread).local; }

    void touching_window(int thread, const std::function<void()>& f) override { touching_own(pairs_.of(thread), f); }

    void send(int thread, long count, long first, bool issues, const Told& told, Marks& marks) override {
        const MpiPairs::Endpoint& at = pairs_.of(thread);
        const MpiEpochs epochs(at, sync_);
        epochs.open();
        for (long i = 0; i < count;) {
            const long end = std::min(count, i + spec_.every);
            if (two_sided()) {
                send_messages(thread, at, i, end, first, issues);
            } else {
                epochs.begin();
                for (long k = i; k < end && issues; ++k) {
                    if (!is_lost(session_, first + k))
                        issue(at, slot_of(k));
                }
                epochs.end();
            }
            i = end;
            marks.mark();
        }
        MPI_Send(&told, sizeof told, MPI_BYTE, at.partner, kToldTag, at.comm);
        if (!reads())
            MPI_Recv(nullptr, 0, MPI_BYTE, at.partner, kAnswerTag, at.comm, MPI_STATUS_IGNORE);
        epochs.close();
    }

    bool receive(int thread, long count) override {
        const MpiPairs::Endpoint& at = pairs_.of(thread);
        const MpiEpochs epochs(at, sync_);
        epochs.open();
        if (two_sided())
            receive_messages(thread, at, count);
        for (long i = 0; i < count && !two_sided(); i += spec_.every) epochs.expose();
        Told told{};
        MPI_Recv(&told, sizeof told, MPI_BYTE, at.partner, kToldTag, at.comm, MPI_STATUS_IGNORE);
        bool ok = true;
        const auto look = [&] { ok = looks_right(thread, told); };
        if (sync_ == MpiSync::kFlush)
            MPI_Win_sync(at.win);
        if (sync_ == MpiSync::kLock)
            touching_own(at, look);
        else
            look();
        if (!reads())
            MPI_Send(nullptr, 0, MPI_BYTE, at.partner, kAnswerTag, at.comm);
        epochs.close();
        return ok;
    }

  private:
    bool two_sided() const { return sync_ == MpiSync::kWaitall; }

    void issue(const MpiPairs::Endpoint& at, long slot) const {
        static const long kOne = 1;
        const MPI_Aint there = slot * spec_.stride();
        char* const here = at.local + there;
        const bool gets = reads() || (spec_.op == PeerOp::kPut && session_.options().fault == Fault::kGetNamedPut);
        if (gets)
            MPI_Get(here, size_, MPI_BYTE, at.partner, there, size_, MPI_BYTE, at.win);
        else if (spec_.op == PeerOp::kPut)
            MPI_Put(here, size_, MPI_BYTE, at.partner, there, size_, MPI_BYTE, at.win);
        else if (spec_.op == PeerOp::kAdd)
            MPI_Accumulate(&kOne, 1, MPI_LONG, at.partner, there, 1, MPI_LONG, MPI_SUM, at.win);
        else
            MPI_Fetch_and_op(&kOne, here, MPI_LONG, at.partner, there, MPI_SUM, at.win);
    }

    // An epoch of two-sided messages, which ends with the target's answer. One that a planted fault loses goes without
    // its bytes: the receive for it would end in a hang.
    void send_messages(int thread, const MpiPairs::Endpoint& at, long i, long end, long first, bool issues) {
        std::vector<MPI_Request>& requests = requests_[static_cast<size_t>(thread)];
        for (long k = i; k < end; ++k) {
            const int bytes = issues && !is_lost(session_, first + k) ? size_ : 0;
            MPI_Isend(at.local + slot_of(k) * spec_.stride(), bytes, MPI_BYTE, at.partner, kMessageTag, at.comm,
                      &requests[static_cast<size_t>(k - i)]);
        }
        MPI_Waitall(static_cast<int>(end - i), requests.data(), MPI_STATUSES_IGNORE);
        MPI_Recv(nullptr, 0, MPI_BYTE, at.partner, kAnswerTag, at.comm, MPI_STATUS_IGNORE);
    }

    // The receives of an epoch are posted before the answer to the one before leaves, so no message comes unexpected
    // but those of the first.
    void receive_messages(int thread, const MpiPairs::Endpoint& at, long count) {
        std::vector<MPI_Request>& requests = requests_[static_cast<size_t>(thread)];
        const auto post = [&](long i) {
            const long end = std::min(count, i + spec_.every);
            for (long k = i; k < end; ++k)
                MPI_Irecv(at.window + slot_of(k) * spec_.stride(), size_, MPI_BYTE, at.partner, kMessageTag, at.comm,
                          &requests[static_cast<size_t>(k - i)]);
            return static_cast<int>(end - i);
        };
        int posted = post(0);
        for (long i = 0; i < count; i += spec_.every) {
            MPI_Waitall(posted, requests.data(), MPI_STATUSES_IGNORE);
            if (i + spec_.every < count)
                posted = post(i + spec_.every);
            MPI_Send(nullptr, 0, MPI_BYTE, at.partner, kAnswerTag, at.comm);
        }
    }

    const MpiPairs& pairs_;
    const MpiSync sync_;
    const int size_;
    std::vector<std::vector<MPI_Request>> requests_;  // by thread
};

// There and back under fence, post and start, or two-sided. Lock and flush have no such form: the target would have to
// poll its window, which MPI does not promise to carry on.
class MpiRoundTrip final : public PeerRoundTrip {
  public:
    MpiRoundTrip(Session& session, const MpiPairs& pairs, long size_bytes, MpiSync sync)
        : PeerRoundTrip(session, size_bytes), pairs_(pairs), sync_(sync) {}

  protected:
    char* outbox(int thread) override { return pairs_.of(thread).local; }
    char* inbox(int thread) override { return pairs_.of(thread).window; }
    void open(int thread) override { MpiEpochs(pairs_.of(thread), sync_).open(); }
    void close(int thread) override { MpiEpochs(pairs_.of(thread), sync_).close(); }

    void send(int thread) override {
        const MpiPairs::Endpoint& at = pairs_.of(thread);
        const int bytes = static_cast<int>(size_);
        if (sync_ == MpiSync::kWaitall) {
            MPI_Request request;
            MPI_Isend(at.local, bytes, MPI_BYTE, at.partner, kMessageTag, at.comm, &request);
            MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
            return;
        }
        const MpiEpochs epochs(at, sync_);
        epochs.begin();
        if (session_.options().fault == Fault::kGetNamedPut)
            MPI_Get(at.local, bytes, MPI_BYTE, at.partner, 0, bytes, MPI_BYTE, at.win);
        else
            MPI_Put(at.local, bytes, MPI_BYTE, at.partner, 0, bytes, MPI_BYTE, at.win);
        epochs.end();
    }

    void await(int thread) override {
        const MpiPairs::Endpoint& at = pairs_.of(thread);
        if (sync_ != MpiSync::kWaitall)
            return MpiEpochs(at, sync_).expose();
        MPI_Request request;
        MPI_Irecv(at.window, static_cast<int>(size_), MPI_BYTE, at.partner, kMessageTag, at.comm, &request);
        MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
    }

  private:
    const MpiPairs& pairs_;
    const MpiSync sync_;
};

}  // namespace shmem_mt
