// One-sided traffic from each sending PE to its partner: every thread cycles through its own window of slots
// at the target. Latency (one slot, quiet after each), bandwidth (quiet after each window) and message rate
// (quiet at the end) are the same loop with other numbers.
//
// A sample, for operations that write:
//     threads and PEs start together; each thread issues `count` messages, then quiet
//     leader -> target   where the last message of each thread lies and what it must be; quiet; flag
//     target             waits for the flag, looks at those places itself, acknowledges
//     leader             stops the clock when the acknowledgement is there
// so neither an early stop nor a quiet that does not complete goes unseen. Operations that read stop when the
// data has come back; the caller then compares, before any barrier, what it has read with what the target wrote for this
// sample: all words of g and atomic_fetch and all results of fetch-add, both ends of the last message of get.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "programs/common/acknowledgement.hpp"
#include "programs/common/clock.hpp"
#include "programs/common/job.hpp"
#include "programs/common/measure.hpp"
#include "programs/common/operations.hpp"
#include "programs/common/payload.hpp"
#include "programs/common/requests.hpp"
#include "programs/common/run_together.hpp"
#include "programs/common/transfer_memory.hpp"
#include "programs/common/validation.hpp"

namespace shmem_mt {

struct TransferSpec {
    Op op = Op::kPut;
    Route route = Route::kDefaultContext;
    Requests requests = Requests::kNone;  // of non-blocking operations; kEach wants quiet_every = 1
    bool on_heap = true;
    bool bidirectional = false;
    bool cold = false;  // slots are so many that no cache holds them
    long size_bytes = 8;
    long slots = 1;        // a power of two
    long quiet_every = 0;  // messages; 0: only at the end
    bool chained = false;  // each operation has its address from the result of the one before it: of blocking ones
};

class Transfer {
  public:
    Transfer(Job& job, TransferMemory& memory, const TransferSpec& spec)
        : job_(job), memory_(memory), spec_(spec), stride_(std::max(8L, spec.size_bytes)), region_(region_bytes(spec)) {
        sums_.resize(static_cast<size_t>(job.threads()));
        if (spec.requests == Requests::kShared) {
            shared_ = std::make_unique<SharedRequest>();
            if (!shared_->ok())
                fail("there is no memory for a shared request");
        }
        fill_sources(job.next_token());
    }

    // Of one thread.
    static long window_bytes(const TransferSpec& spec) { return spec.slots * std::max(8L, spec.size_bytes); }

    // The same, rounded up to pages.
    static long region_bytes(const TransferSpec& spec) { return (window_bytes(spec) + 4095) / 4096 * 4096; }

    // False when the static window cannot hold this point.
    static bool fits(const Job& job, const TransferSpec& spec) {
        return spec.on_heap || region_bytes(spec) * job.threads() <= kStaticBytes;
    }

    // Runs `count` messages a thread. Collective. The report's time runs from the first thread's start to the
    // acknowledgement (writes) or to the last thread's end (reads). Every sample begins at the first slot, so cold ones
    // are preceded by a pass over both buffers, behind which no cache has their first slots. With histograms, which wants
    // quiet_every = 1 and no requests, each operation is stamped into its thread's.
    Report sample(long count, std::vector<Histogram>* histograms = nullptr) {
        for (const char* buffer : {window(0), local(0)}) read_lines(buffer, spec_.cold ? region_ * job_.threads() : 0);
        if (op_is_atomic_update(spec_.op) && receives())
            clear_window(0);
        const long token = job_.next_token();
        if (op_reads(spec_.op))
            mark_windows(count, token);
        if (spec_.op == Op::kFetchAddNbi)
            std::memset(local(0), 0xee, static_cast<size_t>(region_ * job_.threads()));
        Report report = run(count, token, histograms);
        report.ok = report.ok && (!sends() || returned_right(count, token));
        return report;
    }

    // The loop of a sample with bytes that are checked afterwards, at the target for writes, at the caller for reads:
    // once past the last slot, then slot by slot, each pass with bytes of its own. So of kValidated messages each one
    // that does not come is seen. Not timed. Collective.
    Agreed validate() {
        Checker checker(job_.options().fault);
        validate_pass(checker, spec_.slots + 1);
        for (long seen = 0; seen < kValidated; seen += spec_.slots) validate_pass(checker, spec_.slots);
        return agree_verdict(job_, checker);
    }

  private:
    static constexpr long kValidated = 8;

    void validate_pass(Checker& checker, long count) {
        const long token = job_.next_token();
        fill_sources(token);
        if (op_reads(spec_.op)) {
            for (int t = 0; t < job_.threads(); ++t) {
                std::memset(local(t), 0xee, static_cast<size_t>(region_));
                fill_slots(window(t), job_.me(), t, token);
            }
        } else {
            clear_window(op_is_atomic_update(spec_.op) ? 0 : 0xee);
            if (spec_.op == Op::kFetchAddNbi)
                std::memset(local(0), 0xee, static_cast<size_t>(region_ * job_.threads()));
        }
        validating_ = true;
        const Report report = run(count, token);
        validating_ = false;
        if (!op_reads(spec_.op))
            shmem_barrier_all();  // what was read is there as soon as the operation says so
        check(checker, count, token);
        shmem_barrier_all();
        if (!report.ok)
            checker.compare_word(0, 1);
    }

    bool sends() const { return spec_.bidirectional || job_.is_sender(); }
    bool receives() const { return spec_.bidirectional || !job_.is_sender(); }
    bool plain() const { return spec_.route == Route::kPlainPeer || spec_.route == Route::kPlainPrivate; }
    char* window(int thread) { return memory_.window(spec_.on_heap) + thread * region_; }
    char* local(int thread) { return memory_.local() + thread * region_; }

    void clear_window(int byte) {
        for (int t = 0; t < job_.threads(); ++t) std::memset(window(t), byte, static_cast<size_t>(region_));
    }

    void fill_slots(char* memory, int pe, int thread, long token) {
        const long base = make_base(pe, thread, token);
        for (long slot = 0; slot < spec_.slots; ++slot)
            fill_slot(memory + slot * stride_, base, slot, spec_.size_bytes);
    }

    void fill_sources(long token) {
        source_token_ = token;
        for (int t = 0; t < job_.threads(); ++t) fill_slots(local(t), job_.me(), t, token);
    }

    // The operation that really runs: the one named, unless a fault is planted.
    Op real_op() const {
        if (job_.options().fault != Fault::kGetNamedPut || !op_sends_buffer(spec_.op))
            return spec_.op;
        return spec_.op == Op::kPut ? Op::kGet : Op::kGetNbi;
    }

    Cursor cursor(int thread, long token) {
        Cursor c{window(thread),
                 local(thread),
                 stride_,
                 spec_.slots - 1,
                 make_base(job_.me(), thread, token),
                 static_cast<size_t>(spec_.size_bytes),
                 job_.message_pe()};
        if (spec_.route == Route::kPlainPeer)
            c.remote = static_cast<char*>(shmem_ptr(c.remote, c.pe));
        return c;
    }

    Report run(long count, long token, std::vector<Histogram>* histograms = nullptr) {
        Report report;
        if (!sends()) {
            shmem_barrier_all();
            if (needs_ack())
                report.ok = look_at_last(job_, window(0), token);
            return report;
        }
        std::vector<Cursor> cursors;
        for (int t = 0; t < job_.threads(); ++t) {
            cursors.push_back(cursor(t, token));
            if (op_sends_buffer(spec_.op))
                mark_last(cursors.back(), count, token);
        }
        return run_together(
            job_,
            [&](int thread) {
                const size_t index = static_cast<size_t>(thread);
                sums_[index] = send(thread, cursors[index], count, histograms);
            },
            [&] {
                if (shared_)
                    shared_->wait();
                return !needs_ack() || settle(count, token);
            });
    }

    // `count` messages of one thread. Returns the sum of what it fetched.
    unsigned long send(int thread, const Cursor& c, long messages, std::vector<Histogram>* histograms) {
        const bool skipped = job_.options().fault == Fault::kSkippedOperation;
        const bool idle = skipped || (job_.idles(thread) && !validating_);
        const long count = idle ? 0 : messages;
        const long chunk = spec_.quiet_every ? spec_.quiet_every : messages;
        unsigned long sum = 0;
        if (plain())
            return issue_op(real_op(), PlainLink{}, c, count, chunk);
        job_.with_link(spec_.route, thread, [&](const auto& link) {
            if (histograms != nullptr) {
                Marks marks(histograms, thread);
                const auto mark = [&] { marks.mark(); };
                sum = spec_.chained ? issue_chained_op(spec_.op, link, c, count, mark)
                                    : issue_op(real_op(), link, c, count, 1, mark);
            } else if (spec_.chained) {
                sum = issue_chained_op(spec_.op, link, c, count);
            } else if (spec_.requests == Requests::kNone) {
                sum = issue_op(real_op(), link, c, count, chunk);
            } else {
                with_requests(link, spec_.requests, shared_.get(), [&](const auto& requesting) {
                    sum = issue_non_blocking(real_op(), requesting, c, count, chunk);
                });
            }
        });
        return sum;
    }

    bool needs_ack() const { return !plain() && !op_reads(spec_.op); }

    // Gives both ends of the last message a value that only this sample has.
    void mark_last(const Cursor& c, long count, long token) const {
        if (token != source_token_)
            stamp(c.local_slot(count - 1), spec_.size_bytes, mark_of(job_.me(), token));
    }

    static uint64_t mark_of(int pe, long token) { return static_cast<uint64_t>(~make_base(pe, 0, token)); }

    // Before a timed pass that reads: the target writes what only this pass can find, the caller wipes out what it has.
    void mark_windows(long count, long token) {
        const long last = (count - 1) & (spec_.slots - 1);
        const bool words = spec_.op == Op::kG || spec_.op == Op::kFetch;
        for (int t = 0; t < job_.threads(); ++t) {
            if (spec_.route == Route::kPlainPrivate ? sends() : receives()) {
                if (words)
                    fill_slots(window(t), job_.me(), t, token);
                else
                    stamp(window(t) + last * stride_, spec_.size_bytes, mark_of(job_.me(), token));
            }
            if (sends())
                stamp(local(t) + last * stride_, spec_.size_bytes, 0);
        }
    }

    // Whether a timed pass brought the caller what it is to have. Plain stores and copies are seen through the mapping.
    bool returned_right(long count, long token) {
        Checker checker(job_.options().fault);
        const int pe = spec_.route == Route::kPlainPrivate ? job_.me() : job_.partner();
        const long last = (count - 1) & (spec_.slots - 1);
        if (spec_.op == Op::kFetchAdd)
            check_fetched(checker, count);
        if (spec_.op == Op::kFetchAddNbi)
            check_fetched_nbi(checker, count);
        for (int t = 0; t < job_.threads(); ++t) {
            if (spec_.op == Op::kG || spec_.op == Op::kFetch) {
                const long sum = sum_of_words(make_base(pe, t, token), count);
                checker.compare_word(static_cast<long>(sums_[static_cast<size_t>(t)]), sum);
            } else if (op_reads(spec_.op)) {
                checker.compare_word(has_stamp(local(t) + last * stride_, spec_.size_bytes, mark_of(pe, token)), 1);
            } else if (plain() && spec_.op == Op::kP) {
                const Cursor c = cursor(t, token);
                checker.compare_word(__atomic_load_n(c.word(count - 1), __ATOMIC_RELAXED), c.base + count - 1);
            } else if (plain() && op_sends_buffer(spec_.op)) {
                const uint64_t mark = mark_of(job_.me(), token);
                checker.compare_word(has_stamp(cursor(t, token).slot(count - 1), spec_.size_bytes, mark), 1);
            }
        }
        return checker.ok();
    }

    // Where the last message of `thread` lies in the windows and what its last word must be.
    Control::LastWord last_word(int thread, long count, long token) {
        const long slot = (count - 1) & (spec_.slots - 1);
        Control::LastWord last{window(thread) - window(0) + slot * stride_, 0};
        if (spec_.op == Op::kP) {
            last.value = make_base(job_.me(), thread, token) + count - 1;
        } else if (op_is_atomic_update(spec_.op)) {
            last.value = hits(count, slot);
        } else if (spec_.size_bytes >= 8) {
            const char* const message = local(thread) + slot * stride_;
            last.first = last.offset;
            last.offset += spec_.size_bytes - 8;
            std::memcpy(&last.value, message + spec_.size_bytes - 8, 8);
            std::memcpy(&last.first_value, message, 8);
        } else {
            last.offset = -1;
        }
        return last;
    }

    // Messages of `count` that went to `slot`.
    long hits(long count, long slot) const { return count > slot ? (count - slot - 1) / spec_.slots + 1 : 0; }

    // Leader, after its PE's threads are quiet. False when messages for this PE are not there.
    bool settle(long count, long token) {
        Control::LastWord last[kMaxThreads];
        for (int t = 0; t < job_.threads(); ++t) last[t] = last_word(t, count, token);
        tell_last(job_, last, token);
        const bool ok = receives() ? look_at_last(job_, window(0), token) : true;
        await_answer(job_, token);
        return ok;
    }

    void check(Checker& checker, long count, long token) {
        const bool at_home = spec_.route == Route::kPlainPrivate;  // the window is the caller's own
        const bool here = op_reads(spec_.op) || at_home ? sends() : receives();
        if (spec_.op == Op::kFetchAdd && sends())
            check_fetched(checker, count);
        if (spec_.op == Op::kFetchAddNbi && sends())
            check_fetched_nbi(checker, count);
        if (!here)
            return;
        for (int t = 0; t < job_.threads(); ++t) {
            const long base = make_base(at_home ? job_.me() : job_.partner(), t, token);
            if (spec_.op == Op::kG || spec_.op == Op::kFetch)
                checker.compare_word(static_cast<long>(sums_[static_cast<size_t>(t)]), sum_of_words(base, count));
            for (long slot = 0; slot < spec_.slots; ++slot) {
                const char* place = (op_reads(spec_.op) ? local(t) : window(t)) + slot * stride_;
                check_slot(checker, place, base, slot, count);
            }
        }
    }

    // The values that fetch-add returned: 0, 1, 2 ... at every slot. The sender has them, so it checks them.
    void check_fetched(Checker& checker, long count) const {
        unsigned long sum = 0;
        for (long slot = 0; slot < spec_.slots; ++slot) {
            const long n = hits(count, slot);
            sum += static_cast<unsigned long>(n * (n - 1) / 2);
        }
        for (const unsigned long fetched : sums_)
            checker.compare_word(static_cast<long>(fetched), static_cast<long>(sum));
    }

    // Those in flight come in any order, so each place has one of the values that fetch-add returns there.
    void check_fetched_nbi(Checker& checker, long count) {
        for (int t = 0; t < job_.threads(); ++t) {
            for (long slot = 0; slot < std::min(count, spec_.slots); ++slot) {
                long fetched = 0;
                std::memcpy(&fetched, local(t) + slot * stride_, 8);
                checker.compare_word(std::clamp(fetched, 0L, hits(count, slot) - 1), fetched);
            }
        }
    }

    void check_slot(Checker& checker, const char* place, long sender_base, long slot, long count) const {
        long actual = 0;
        if (spec_.op == Op::kG || spec_.op == Op::kFetch)
            return;
        if (spec_.op == Op::kP || op_is_atomic_update(spec_.op))
            std::memcpy(&actual, place, 8);
        if (spec_.op == Op::kP) {
            const long last = (hits(count, slot) - 1) * spec_.slots + slot;
            checker.compare_word(actual, sender_base + last);
        } else if (op_is_atomic_update(spec_.op)) {
            checker.compare_word(actual, hits(count, slot));
        } else {
            checker.compare_slot(place, sender_base, slot, spec_.size_bytes);
        }
    }

    long sum_of_words(long base, long count) const {
        uint64_t sum = 0;
        for (long slot = 0; slot < spec_.slots; ++slot)
            sum += static_cast<uint64_t>(hits(count, slot)) * pattern_word(base, slot, 0);
        return static_cast<long>(sum);
    }

    Job& job_;
    TransferMemory& memory_;
    const TransferSpec spec_;
    const long stride_;                // bytes from slot to slot
    const long region_;                // bytes from thread to thread
    std::vector<unsigned long> sums_;  // by thread: what its loop fetched, so that the loop has a use
    std::unique_ptr<SharedRequest> shared_;
    long source_token_ = 0;
    bool validating_ = false;
};

}  // namespace shmem_mt
