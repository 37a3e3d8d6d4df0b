// Data followed by a signal word: put with signal where the library has it (OpenSHMEM 1.5), else put, fence and put of
// the word. Any thread may send and wait.
#pragma once

#include <shmem.h>

#include <cstdint>

#include "programs/common/link.hpp"

namespace shmem_mt {

// A word of symmetric memory that one PE writes and one thread waits for.
struct alignas(64) Signal {
    uint64_t word;
};

// A thread of `pe` that sees `value` in the signal sees the data. `source` may be used again at once.
template <class Link>
void put_and_signal(const Link& link, void* dest, const void* source, size_t bytes, Signal* signal, uint64_t value,
                    int pe) {
#if SHMEM_MT_HAVE_PUT_SIGNAL
    link.put_signal(dest, source, bytes, &signal->word, value, pe);
#else
    link.put(dest, source, bytes, pe);
    link.fence();
    link.p(reinterpret_cast<long*>(&signal->word), static_cast<long>(value), pe);
#endif
}

// put_and_signal whose `source` must stay as it is until a quiet, or until `pe` is known to have the data.
template <class Link>
void put_and_signal_nbi(const Link& link, void* dest, const void* source, size_t bytes, Signal* signal, uint64_t value,
                        int pe) {
#if SHMEM_MT_HAVE_PUT_SIGNAL
    link.put_signal_nbi(dest, source, bytes, &signal->word, value, pe);
#else
    put_and_signal(link, dest, source, bytes, signal, value, pe);
#endif
}

// Until the signal is `value` or more.
inline void await_signal(Signal* signal, uint64_t value) {
#if SHMEM_MT_HAVE_PUT_SIGNAL
    shmem_signal_wait_until(&signal->word, SHMEM_CMP_GE, value);
#else
    shmem_long_wait_until(reinterpret_cast<long*>(&signal->word), SHMEM_CMP_GE, static_cast<long>(value));
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

}  // namespace shmem_mt
