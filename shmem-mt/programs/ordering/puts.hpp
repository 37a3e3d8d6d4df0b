// Streams of puts under the rules of the ordering study, on any OpenSHMEM.
#pragma once

#include <cstring>
#include <vector>

#include "programs/common/transfer.hpp"
#include "programs/ordering/contexts.hpp"
#include "programs/ordering/links.hpp"

namespace shmem_mt {

class OrderedPuts final : public Stream {
  public:
    // `posts`: one a thread. `slice`: messages leave in pieces of so many bytes; 0: whole.
    OrderedPuts(Job& job, TransferMemory& memory, const RuleContexts& contexts, OrderPost* posts, Rule rule, long size,
                long outstanding, long slice)
        : job_(job),
          memory_(memory),
          contexts_(contexts),
          posts_(posts),
          rule_(rule),
          size_(size),
          stride_(std::max(8L, size)),
          outstanding_(outstanding),
          region_(window_bytes(size, outstanding)),
          slice_(slice) {
        fill_sources(job.next_token());
    }

    Report sample(long windows) override {
        const long token = job_.next_token();
        Report report;
        if (!job_.is_sender()) {
            shmem_barrier_all();
            report.ok = look_at_last(job_, window(0), token);
            return report;
        }
        mark_last(token);
        const long messages = windows * outstanding_;
        return run_together(
            job_,
            [&](int thread) {
                with_link(thread,
                          [&](const auto& link) { send(link, cursor(thread), job_.idles(thread) ? 0 : messages); });
            },
            [&] { return settle(token); });
    }

    // Two windows and one message more. When the flag behind the first window is there, the target has seen all slots.
    Agreed validate() override {
        const long token = job_.next_token();
        fill_sources(token);
        for (int t = 0; t < job_.threads(); ++t) std::memset(window(t), 0xee, static_cast<size_t>(region_));
        std::vector<Checker> checkers(static_cast<size_t>(job_.threads()), Checker(job_.options().fault));
        shmem_barrier_all();
        job_.team().run([&](int thread) {
            Checker& checker = checkers[static_cast<size_t>(thread)];
            Inspection inspection(posts_[thread], token, outstanding_, rule_ != Rule::kRelaxed);
            if (job_.is_sender())
                send_inspected(thread, inspection, checker);
            else
                inspection.follow(job_.partner(),
                                  [&](long first, long end) { check(checker, thread, token, first, end); });
        });
        shmem_barrier_all();
        Checker checker(job_.options().fault);
        for (const Checker& one : checkers) checker.add(one);
        return agree_verdict(job_, checker);
    }

  private:
    char* window(int thread) { return memory_.window(true) + thread * region_; }
    char* local(int thread) { return memory_.local() + thread * region_; }
    bool faulty(Fault fault) const { return job_.options().fault == fault; }

    void fill_sources(long token) {
        for (int t = 0; t < job_.threads(); ++t) {
            for (long slot = 0; slot < outstanding_; ++slot)
                fill_slot(local(t) + slot * stride_, make_base(job_.me(), t, token), slot, size_);
        }
    }

    Cursor cursor(int thread) {
        return {window(thread),   local(thread), stride_, outstanding_ - 1, 0, static_cast<size_t>(size_),
                job_.message_pe()};
    }

    // The last word of each thread's window; its end is what every sample ends with.
    Control::LastWord last_word(int thread) {
        Control::LastWord last{thread * region_ + (outstanding_ - 1) * stride_ + size_ - 8, 0};
        std::memcpy(&last.value, local(0) + last.offset, 8);
        return last;
    }

    // Gives it a value that only this sample has. Sizes that are no words are not looked at.
    void mark_last(long token) {
        for (int t = 0; size_ % 8 == 0 && t < job_.threads(); ++t) {
            const long value = ~make_base(job_.me(), t, token);
            std::memcpy(local(0) + last_word(t).offset, &value, 8);
        }
    }

    bool settle(long token) {
        Control::LastWord last[kMaxThreads];
        for (int t = 0; t < job_.threads(); ++t) last[t] = size_ % 8 == 0 ? last_word(t) : Control::LastWord{-1, 0};
        tell_last(job_, last, token);
        await_answer(job_, token);
        return true;
    }

    // Calls f(link) with the link of the rule's messages.
    template <class F>
    void with_link(int thread, F&& f) const {
        const bool ordered = RuleContexts::keeps_order(rule_) && !faulty(Fault::kRuleIgnored);
        contexts_.with_link(ordered, thread, [&](const auto& link) {
            if (slice_ > 0)
                f(SliceLink(link, slice_));
            else
                f(link);
        });
    }

    // `count` messages under the rule, here and nowhere else: what is timed is what is looked at.
    template <class Link>
    void send(const Link& link, const Cursor& c, long count) const {
        const bool ignored = faulty(Fault::kRuleIgnored);
        const bool never_quiet = faulty(Fault::kWindowIgnored) || (rule_ == Rule::kQuiet && ignored);
        const long chunk = never_quiet ? count : outstanding_;
        if (faulty(Fault::kSkippedOperation))
            return link.quiet();
        if (faulty(Fault::kGetNamedPut))
            issue<Op::kGetNbi>(link, c, count, chunk);
        else if (rule_ == Rule::kQuiet)
            issue<Op::kPut>(link, c, count, chunk);
        else if (rule_ == Rule::kFence && !ignored)
            issue<Op::kPutNbi>(FenceLink<Link>(link), c, count, chunk);
        else
            issue<Op::kPutNbi>(link, c, count, chunk);
    }

    void send_inspected(int thread, Inspection& inspection, Checker& checker) {
        const long count = 2 * outstanding_ + 1;
        with_link(thread, [&](const auto& link) {
            using Inspected = InspectedLink<std::decay_t<decltype(link)>>;
            typename Inspected::Held held;
            send(Inspected(link, &inspection, faulty(Fault::kLateMessage) ? &held : nullptr, job_.partner()),
                 cursor(thread), count);
            inspection.finish(link, job_.partner());
            checker.compare_word(RuleContexts::suits(link, rule_), true);
        });
        checker.compare_word(inspection.messages(), count);
        checker.compare_word(inspection.most_in_flight(), outstanding_);
        checker.compare_word(inspection.fences(), rule_ == Rule::kFence ? count : 0);
    }

    // Target: the messages from `first` to `end` of a window must be there, all their bytes.
    void check(Checker& checker, int thread, long token, long first, long end) {
        const long base = make_base(job_.partner(), thread, token);
        for (long slot = first; slot < end; ++slot)
            checker.compare_slot(window(thread) + slot * stride_, base, slot, size_);
    }

    Job& job_;
    TransferMemory& memory_;
    const RuleContexts& contexts_;
    OrderPost* const posts_;
    const Rule rule_;
    const long size_;
    const long stride_;       // bytes from slot to slot
    const long outstanding_;  // slots; a power of two
    const long region_;       // bytes from thread to thread
    const long slice_;
};

}  // namespace shmem_mt
