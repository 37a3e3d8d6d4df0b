// The one-sided operations of a Transfer (transfer.hpp), and the loops that issue them. Each loop is written once for all
// links (link.hpp); nothing is decided by message.
#pragma once

#include <algorithm>
#include <cstring>

#include "programs/common/link.hpp"

namespace shmem_mt {

enum class Op { kP, kG, kPut, kGet, kPutNbi, kGetNbi, kAdd, kFetchAdd, kFetchAddNbi, kFetch };

inline bool op_reads(Op op) {
    return op == Op::kG || op == Op::kGet || op == Op::kGetNbi || op == Op::kFetch;
}
inline bool op_is_atomic_update(Op op) {
    return op == Op::kAdd || op == Op::kFetchAdd || op == Op::kFetchAddNbi;
}
inline bool op_sends_buffer(Op op) {
    return op == Op::kPut || op == Op::kPutNbi;
}

// All that the inner loop reads; copied, so that it lives in registers.
struct Cursor {
    char* remote;  // this thread's window, as the link addresses it
    char* local;   // private: sources of puts, destinations of gets
    long stride;   // bytes from slot to slot
    long mask;     // slots - 1
    long base;     // value of the first message
    size_t bytes;
    int pe;

    long* word(long i) const { return reinterpret_cast<long*>(remote) + (i & mask); }
    char* slot(long i) const { return remote + (i & mask) * stride; }
    char* local_slot(long i) const { return local + (i & mask) * stride; }
    long* local_word(long i) const { return reinterpret_cast<long*>(local_slot(i)); }
};

template <Op op, class Link>
inline unsigned long issue_one(const Link& link, const Cursor& c, long i) {
    if constexpr (op == Op::kP)
        return link.p(c.word(i), c.base + i, c.pe), 0;
    if constexpr (op == Op::kG)
        return static_cast<unsigned long>(link.g(c.word(i), c.pe));
    if constexpr (op == Op::kPut)
        return link.put(c.slot(i), c.local_slot(i), c.bytes, c.pe), 0;
    if constexpr (op == Op::kGet)
        return link.get(c.local_slot(i), c.slot(i), c.bytes, c.pe), 0;
    if constexpr (op == Op::kPutNbi)
        return link.put_nbi(c.slot(i), c.local_slot(i), c.bytes, c.pe), 0;
    if constexpr (op == Op::kGetNbi)
        return link.get_nbi(c.local_slot(i), c.slot(i), c.bytes, c.pe), 0;
    if constexpr (op == Op::kAdd)
        return link.add(c.word(i), 1, c.pe), 0;
    if constexpr (op == Op::kFetchAdd)
        return static_cast<unsigned long>(link.fetch_add(c.word(i), 1, c.pe));
    if constexpr (op == Op::kFetchAddNbi)
        return link.fetch_add_nbi(c.local_word(i), c.word(i), 1, c.pe), 0;
    if constexpr (op == Op::kFetch)
        return static_cast<unsigned long>(link.fetch(c.word(i), c.pe));
}

struct NoMark {
    void operator()() const {}
};

// The timed loop: `count` messages, quiet after each `chunk`, then mark(). Returns the sum of what was fetched.
template <Op op, class Link, class Mark = NoMark>
unsigned long issue(const Link link, const Cursor c, long count, long chunk, Mark mark = {}) {
    unsigned long sum = 0;
    for (long i = 0; i < count;) {
        const long end = std::min(count, i + chunk);
        for (; i < end; ++i) sum += issue_one<op>(link, c, i);
        link.quiet();
        mark();
    }
    return sum;
}

// `count` operations one after the other, then mark() each: the address of each depends on what the one before it has
// returned, so that no core begins it earlier. Returns the sum of what was fetched.
template <Op op, class Link, class Mark = NoMark>
unsigned long issue_chained(const Link link, Cursor c, long count, Mark mark = {}) {
    char* const remote = c.remote;
    long nothing = 0;
    asm volatile("" : "+r"(nothing));  // the compiler does not know that it is 0
    unsigned long sum = 0;
    for (long i = 0; i < count; ++i) {
        long value = static_cast<long>(issue_one<op>(link, c, i));
        if constexpr (op == Op::kGet)
            std::memcpy(&value, c.local_slot(i), std::min<size_t>(8, c.bytes));
        sum += op == Op::kGet ? 0 : static_cast<unsigned long>(value);
        c.remote = remote + (value & nothing);
        mark();
    }
    link.quiet();
    return sum;
}

template <class Link, class Mark = NoMark>
unsigned long issue_chained_op(Op op, const Link& link, const Cursor& c, long count, Mark mark = {}) {
    switch (op) {
        case Op::kG:
            return issue_chained<Op::kG>(link, c, count, mark);
        case Op::kGet:
            return issue_chained<Op::kGet>(link, c, count, mark);
        case Op::kFetchAdd:
            return issue_chained<Op::kFetchAdd>(link, c, count, mark);
        default:
            return issue_chained<Op::kFetch>(link, c, count, mark);
    }
}

template <class Link, class Mark = NoMark>
unsigned long issue_op(Op op, const Link& link, const Cursor& c, long count, long chunk, Mark mark = {}) {
    switch (op) {
        case Op::kP:
            return issue<Op::kP>(link, c, count, chunk, mark);
        case Op::kG:
            return issue<Op::kG>(link, c, count, chunk, mark);
        case Op::kPut:
            return issue<Op::kPut>(link, c, count, chunk, mark);
        case Op::kGet:
            return issue<Op::kGet>(link, c, count, chunk, mark);
        case Op::kPutNbi:
            return issue<Op::kPutNbi>(link, c, count, chunk, mark);
        case Op::kGetNbi:
            return issue<Op::kGetNbi>(link, c, count, chunk, mark);
        case Op::kAdd:
            return issue<Op::kAdd>(link, c, count, chunk, mark);
        case Op::kFetchAdd:
            return issue<Op::kFetchAdd>(link, c, count, chunk, mark);
        case Op::kFetchAddNbi:
            return issue<Op::kFetchAddNbi>(link, c, count, chunk, mark);
        case Op::kFetch:
            return issue<Op::kFetch>(link, c, count, chunk, mark);
    }
    return 0;
}

// issue() for the operations that a link with requests has.
template <class Link>
unsigned long issue_non_blocking(Op op, const Link& link, const Cursor& c, long count, long chunk) {
    if (op == Op::kFetchAddNbi)
        return issue<Op::kFetchAddNbi>(link, c, count, chunk);
    return op == Op::kPutNbi ? issue<Op::kPutNbi>(link, c, count, chunk) : issue<Op::kGetNbi>(link, c, count, chunk);
}

}  // namespace shmem_mt
