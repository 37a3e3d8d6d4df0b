// Streams between the PEs of a pair, thread with thread, through another interface than OpenSHMEM's: windows of MPI,
// or UCX. What both have in common: the data, its checks, and the order of a sample. A class for each interface has
// the loops. The data and the checks are those of transfer.hpp, so that the figures stand beside its own.
//
//     sender    messages in epochs of `every`, each completed as the synchronization says; then it tells the target where
//               the last message lies and what that must be
//     target    takes its part in each epoch; is told, looks, answers; then the sender's clock stops
// What reads stops when the data has come back, and the target is only told that it may go on.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "programs/common/histogram.hpp"
#include "programs/common/measure.hpp"
#include "programs/common/payload.hpp"
#include "programs/common/run_together.hpp"
#include "programs/common/validation.hpp"

namespace shmem_mt {

// Whether messages for the partner go to another PE or nowhere, because a fault is planted.
inline bool goes_astray(const Session& session) {
    return session.options().fault == Fault::kSkippedOperation || session.message_pe() != session.partner();
}

// Whether a planted fault loses message number `number` of a thread.
inline bool is_lost(const Session& session, long number) {
    return session.options().fault == Fault::kLostMessage && number % 7 == 6;
}

// kPut: whatever writes a message of bytes, two-sided ones included. kAdd, kFetchAdd: words of 8 bytes.
enum class PeerOp { kPut, kGet, kAdd, kFetchAdd };

struct PeerSpec {
    PeerOp op = PeerOp::kPut;
    long size_bytes = 8;
    long slots = 1;  // of a window, a power of two
    long every = 1;  // messages of an epoch, at most `slots`: none is written twice in it

    long stride() const { return std::max(8L, size_bytes); }
    long window_bytes() const { return slots * stride(); }
};

class PeerTransfer {
  public:
    PeerTransfer(Session& session, const PeerSpec& spec) : session_(session), spec_(spec) {
        numbers_.assign(static_cast<size_t>(session.threads()), 0);
    }
    virtual ~PeerTransfer() = default;
    PeerTransfer(const PeerTransfer&) = delete;
    PeerTransfer& operator=(const PeerTransfer&) = delete;

    // `count` messages a thread. With histograms, which wants every = 1, each epoch is stamped. Collective.
    Report sample(long count, std::vector<Histogram>* histograms = nullptr) {
        const long token = session_.next_token();
        for (int t = 0; t < session_.threads(); ++t) mark(t, count, token);
        const Report report = run(count, histograms, false);
        Report mine = session_.is_sender() ? report : Report{};
        mine.ok = report.ok && (!session_.is_sender() || returned_right(count, token));
        return mine;
    }

    // As Transfer::validate: once past the last slot, then slot by slot.
    Agreed validate() {
        Checker checker(session_.options().fault);
        validate_pass(checker, spec_.slots + 1);
        for (long seen = 0; seen < kValidated; seen += spec_.slots) validate_pass(checker, spec_.slots);
        return agree_verdict(session_, checker);
    }

  protected:
    // What the target is told: where the last message lies in its window, and its two ends.
    struct Told {
        long offset;
        long first, last;
    };

    // The memory of a thread: what the partner reaches, and what is private.
    virtual char* window(int thread) = 0;
    virtual char* local(int thread) = 0;

    // Calls f() where plain loads and stores may touch the thread's window.
    virtual void touching_window(int, const std::function<void()>& f) { f(); }

    // The sender's `count` messages, the first of them number `first` of this thread, and the telling. `issues`: false
    // where a planted fault has it send nothing.
    virtual void send(int thread, long count, long first, bool issues, const Told& told, Marks& marks) = 0;

    // The target's part of these, until it has been told. Returns what looks_right says then.
    virtual bool receive(int thread, long count) = 0;

    bool looks_right(int thread, const Told& told) {
        const char* const place = window(thread) + told.offset;
        const long word = std::min(8L, spec_.size_bytes);
        return reads() || (std::memcmp(place, &told.first, static_cast<size_t>(word)) == 0 &&
                           std::memcmp(place + spec_.size_bytes - word, &told.last, static_cast<size_t>(word)) == 0);
    }

    // Where message number `message` of a pass goes; a pass over all slots hits each once.
    virtual long slot_of(long message) const { return message & (spec_.slots - 1); }
    bool reads() const { return spec_.op == PeerOp::kGet; }
    bool updates() const { return spec_.op == PeerOp::kAdd || spec_.op == PeerOp::kFetchAdd; }

    Session& session_;
    const PeerSpec spec_;

  private:
    static constexpr long kValidated = 8;

    static uint64_t mark_of(int pe, int thread, long token) {
        return static_cast<uint64_t>(~make_base(pe, thread, token));
    }

    // Messages of `count` that went to `slot`.
    long hits(long count, long slot) const { return count > slot ? (count - slot - 1) / spec_.slots + 1 : 0; }

    void fill(char* memory, int pe, int thread, long token) const {
        for (long slot = 0; slot < spec_.slots; ++slot)
            fill_slot(memory + slot * spec_.stride(), make_base(pe, thread, token), slot, spec_.size_bytes);
    }

    void clear(char* memory, int byte) const { std::memset(memory, byte, static_cast<size_t>(spec_.window_bytes())); }

    // Before a timed pass: the last message gets what only this pass has, at the side that has the data.
    void mark(int t, long count, long token) {
        const long at = slot_of(count - 1) * spec_.stride();
        const uint64_t own = mark_of(session_.me(), t, token);
        if (updates() && !session_.is_sender())
            touching_window(t, [&] { clear(window(t), 0); });
        if (reads() && !session_.is_sender())
            touching_window(t, [&] { stamp(window(t) + at, spec_.size_bytes, own); });
        if (session_.is_sender() && !updates())
            stamp(local(t) + at, spec_.size_bytes, reads() ? 0 : own);
        if (spec_.op == PeerOp::kFetchAdd && session_.is_sender())
            clear(local(t), 0xee);
    }

    bool returned_right(long count, long token) {
        const long slot = slot_of(count - 1);
        bool ok = true;
        for (int t = 0; t < session_.threads(); ++t) {
            const char* const place = local(t) + slot * spec_.stride();
            const long fetched = hits(count, slot) - 1;
            if (reads())
                ok = ok && has_stamp(place, spec_.size_bytes, mark_of(session_.partner(), t, token));
            if (spec_.op == PeerOp::kFetchAdd)
                ok = ok && std::memcmp(place, &fetched, 8) == 0;
        }
        return ok;
    }

    Told told(int thread, long count) {
        const long slot = slot_of(count - 1);
        Told made{slot * spec_.stride(), hits(count, slot), hits(count, slot)};
        const char* const message = local(thread) + made.offset;
        const long word = std::min(8L, spec_.size_bytes);
        if (!updates()) {
            std::memcpy(&made.first, message, static_cast<size_t>(word));
            std::memcpy(&made.last, message + spec_.size_bytes - word, static_cast<size_t>(word));
        }
        return made;
    }

    Report run(long count, std::vector<Histogram>* histograms, bool validating) {
        std::vector<int> ok(numbers_.size(), 1);
        Report report = run_together(
            session_,
            [&](int t) {
                const size_t i = static_cast<size_t>(t);
                if (!session_.is_sender()) {
                    ok[i] = receive(t, count);
                    return;
                }
                Marks marks(histograms, t);
                const bool idle = session_.idles(t) && !validating;
                send(t, count, numbers_[i], !idle && !goes_astray(session_), told(t, count), marks);
                numbers_[i] += count;
            },
            [] { return true; });
        report.ok = std::count(ok.begin(), ok.end(), 1) == static_cast<long>(ok.size());
        return report;
    }

    void validate_pass(Checker& checker, long count) {
        const long token = session_.next_token();
        for (int t = 0; t < session_.threads(); ++t) {
            if (session_.is_sender()) {
                clear(local(t), 0xee);
                if (spec_.op == PeerOp::kPut)
                    fill(local(t), session_.me(), t, token);
                continue;
            }
            touching_window(t, [&] {
                clear(window(t), updates() ? 0 : 0xee);
                if (reads())
                    fill(window(t), session_.me(), t, token);
            });
        }
        const Report report = run(count, nullptr, true);
        session_.barrier();
        for (int t = 0; t < session_.threads(); ++t) {
            if (session_.is_sender() && (reads() || spec_.op == PeerOp::kFetchAdd))
                check(checker, local(t), t, count, token);
            if (!session_.is_sender() && !reads())
                touching_window(t, [&] { check(checker, window(t), t, count, token); });
        }
        session_.barrier();
        if (!report.ok)
            checker.compare_word(0, 1);
    }

    void check(Checker& checker, const char* memory, int thread, long count, long token) const {
        const long base = make_base(session_.partner(), thread, token);
        for (long slot = 0; slot < spec_.slots; ++slot) {
            const char* const place = memory + slot * spec_.stride();
            long word = 0;
            if (updates())
                std::memcpy(&word, place, 8);
            if (updates())
                checker.compare_word(word, hits(count, slot) - (session_.is_sender() ? 1 : 0));
            else
                checker.compare_slot(place, base, slot, spec_.size_bytes);
        }
    }

    std::vector<long> numbers_;  // by thread: of messages issued so far
};

}  // namespace shmem_mt
