// Words of symmetric memory by which PEs tell each other something. A Signal follows data: put with signal where the
// library has it (OpenSHMEM 1.5), else put, fence and atomic set of the word. A Flag is set alone. Any thread may send
// and wait.
//
// OpenSHMEM keeps no order between two updates of one word unless a fence or the program does (1.6, 9.12): an older one
// may land last. So a word has at most one update under way. Where a sender knows only that its last update but one has
// landed, two words take turns (alternate()).
//
// Puts with signal alone write a Signal, and waits for signals read it (1.6, 9.8.1): other updates are not atomic with
// them. An atomic set alone writes a Flag.
#pragma once

#include <shmem.h>

#include <cstdint>

#include "programs/common/link.hpp"

namespace shmem_mt {

// A word that one PE writes and one thread waits for.
struct alignas(64) Signal {
    uint64_t word;
};
struct alignas(64) Flag {
    long word;
};

// Of two words that take turns, the one for update `number`: pairs[i] and pairs[i + 1] belong together for even i.
template <class Word>
Word* alternate(Word* pairs, long pair, uint64_t number) {
    return pairs + 2 * pair + number % 2;
}

// A thread of `pe` that sees `value` in the signal sees the data. `source` may be used again at once.
template <class Link>
void put_and_signal(const Link& link, void* dest, const void* source, size_t bytes, Signal* signal, uint64_t value,
                    int pe) {
#if SHMEM_MT_HAVE_PUT_SIGNAL
    link.put_signal(dest, source, bytes, &signal->word, value, pe);
#else
    link.put(dest, source, bytes, pe);
    link.fence();
    link.set(reinterpret_cast<long*>(&signal->word), static_cast<long>(value), pe);
#endif
}

// put_and_signal whose `source` must stay as it is until a quiet.
template <class Link>
void put_and_signal_nbi(const Link& link, void* dest, const void* source, size_t bytes, Signal* signal, uint64_t value,
                        int pe) {
#if SHMEM_MT_HAVE_PUT_SIGNAL
    link.put_signal_nbi(dest, source, bytes, &signal->word, value, pe);
#else
    put_and_signal(link, dest, source, bytes, signal, value, pe);
#endif
}

// Until the signal is `value` or more; what it is then.
inline uint64_t await_signal(Signal* signal, uint64_t value) {
#if SHMEM_MT_HAVE_PUT_SIGNAL
    return shmem_signal_wait_until(&signal->word, SHMEM_CMP_GE, value);
#else
    long* const word = reinterpret_cast<long*>(&signal->word);
    shmem_long_wait_until(word, SHMEM_CMP_GE, static_cast<long>(value));
    return static_cast<uint64_t>(shmem_long_atomic_fetch(word, shmem_my_pe()));
#endif
}

// Whether it is so by now.
inline bool has_signal(Signal* signal, uint64_t value) {
#if SHMEM_MT_HAVE_PUT_SIGNAL
    return shmem_uint64_test(&signal->word, SHMEM_CMP_GE, value) != 0;
#else
    return shmem_long_test(reinterpret_cast<long*>(&signal->word), SHMEM_CMP_GE, static_cast<long>(value)) != 0;
#endif
}

template <class Link>
void set_flag(const Link& link, Flag* flag, long value, int pe) {
    link.set(&flag->word, value, pe);
}

// Until the flag is `value` or more.
inline void await_flag(Flag* flag, long value) {
    shmem_long_wait_until(&flag->word, SHMEM_CMP_GE, value);
}

// Whether it is so by now.
inline bool has_flag(Flag* flag, long value) {
    return shmem_long_test(&flag->word, SHMEM_CMP_GE, value) != 0;
}

}  // namespace shmem_mt
