// Links (common/link.hpp) that add to put_nbi what a rule of the ordering study wants of it, and the link that checks
// the calls of that loop in a validating pass.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "programs/common/job.hpp"

namespace shmem_mt {

// A fence behind every message.
template <class Base>
struct FenceLink : Base {
    explicit FenceLink(const Base& base) : Base(base) {}

    void put_nbi(void* dest, const void* source, size_t bytes, int pe) const {
        Base::put_nbi(dest, source, bytes, pe);
        Base::fence();
    }
};

// A message leaves in pieces short enough for the library to copy them.
template <class Base>
struct SliceLink : Base {
    size_t slice;

    SliceLink(const Base& base, long slice_bytes) : Base(base), slice(static_cast<size_t>(slice_bytes)) {}

    void put_nbi(void* dest, const void* source, size_t bytes, int pe) const {
        for (size_t at = 0; at < bytes; at += slice) {
            Base::put_nbi(static_cast<char*>(dest) + at, static_cast<const char*>(source) + at,
                          std::min(slice, bytes - at), pe);
        }
    }
};

// Symmetric, one a thread: "all messages before this one are sent", and "they are looked at".
struct OrderPost {
    alignas(64) long flag;
    alignas(64) long answer;
};

// What the sending thread does and is told in a validating pass. Before some messages of the first window a flag goes
// out by their context: where the rule keeps order, a thread that sees the flag must see all messages before it.
class Inspection {
  public:
    // Both sides find the same flags: behind the first window, when a quiet has come, and `in_order` within it, all
    // where they are few, else some drawn by the token.
    Inspection(OrderPost& post, long token, long outstanding, bool in_order) : post_(post), token_(token) {
        constexpr long kMost = 16;
        std::minstd_rand draw(static_cast<unsigned>(token));
        for (long i = 1; in_order && i < outstanding && i <= kMost; ++i)
            flags_.push_back(outstanding <= kMost ? i : 1 + static_cast<long>(draw() % (outstanding - 1)));
        std::sort(flags_.begin(), flags_.end());
        flags_.erase(std::unique(flags_.begin(), flags_.end()), flags_.end());
        flags_.push_back(outstanding);
    }

    // Sender: before message number messages_ leaves.
    template <class Link>
    void before_message(const Link& link, int partner) {
        if (next_ < flags_.size() && flags_[next_] == messages_)
            raise(link, partner);
        most_in_flight_ = std::max(most_in_flight_, ++in_flight_);
        ++messages_;
    }

    void fenced() { ++fences_; }

    void quieted() { in_flight_ = 0; }

    // Sender, at the end: flags that no message raised, because a fault left it out.
    template <class Link>
    void finish(const Link& link, int partner) {
        while (next_ < flags_.size()) raise(link, partner);
    }

    // Target: calls look(first, end) for each flag when it has come, with the messages that must be there since the
    // last.
    template <class Look>
    void follow(int partner, Look&& look) {
        long seen = 0;
        for (const long flag : flags_) {
            shmem_long_wait_until(&post_.flag, SHMEM_CMP_EQ, value(flag));
            look(seen, flag);
            seen = flag;
            shmem_long_p(&post_.answer, value(flag), partner);
        }
    }

    long messages() const { return messages_; }
    long most_in_flight() const { return most_in_flight_; }
    long fences() const { return fences_; }

  private:
    long value(long flag) const { return (token_ << 20) + flag; }  // kMostOutstanding and 2 fit 20 bits

    template <class Link>
    void raise(const Link& link, int partner) {
        const long flag = value(flags_[next_++]);
        link.p(&post_.flag, flag, partner);
        shmem_long_wait_until(&post_.answer, SHMEM_CMP_EQ, flag);
    }

    OrderPost& post_;
    const long token_;
    std::vector<long> flags_;  // numbers of messages, rising
    size_t next_ = 0;
    long messages_ = 0;
    long in_flight_ = 0;
    long most_in_flight_ = 0;
    long fences_ = 0;
};

// A link that tells an inspection what happens. `late`, a planted fault: every second message is held back until the
// one behind it has left, as a network without order may do; a quiet lets it go.
template <class Base>
struct InspectedLink : Base {
    struct Held {
        void* dest = nullptr;
        const void* source = nullptr;
        size_t bytes = 0;
        int pe = 0;
    };

    Inspection* inspection;
    Held* held;  // null: no fault
    int partner;

    InspectedLink(const Base& base, Inspection* inspects, Held* late, int target)
        : Base(base), inspection(inspects), held(late), partner(target) {}

    void put_nbi(void* dest, const void* source, size_t bytes, int pe) const {
        inspection->before_message(static_cast<const Base&>(*this), partner);
        if (held && !held->dest) {
            *held = {dest, source, bytes, pe};
            return;
        }
        Base::put_nbi(dest, source, bytes, pe);
        let_go();
    }

    void put(void* dest, const void* source, size_t bytes, int pe) const {
        inspection->before_message(static_cast<const Base&>(*this), partner);
        Base::put(dest, source, bytes, pe);
    }

    void fence() const {
        inspection->fenced();
        Base::fence();
    }

    void quiet() const {
        let_go();
        inspection->quieted();
        Base::quiet();
    }

  private:
    void let_go() const {
        if (held && held->dest)
            Base::put_nbi(held->dest, held->source, held->bytes, held->pe);
        if (held)
            *held = {};
    }
};

}  // namespace shmem_mt
