/* What the library is told of a program's own loads and stores, by libtsan.a of the folder heddle/races, which
 * oshcc -fheddle-races links. No program needs this header. */
#ifndef HEDDLE_ACCESSES_H
#define HEDDLE_ACCESSES_H

#include <stddef.h>
#include <stdint.h>

#define HEDDLE_WATCHED_RANGES 3

/* The ranges of addresses of which the library wants to know, empty where HEDDLE_RACES is not set. A range changes while
 * the program runs, by calls of the program, which order it for the thread that has called. */
struct heddle_watched_range {
    uintptr_t begin, bytes;
};
struct heddle_watched {
    struct heddle_watched_range ranges[HEDDLE_WATCHED_RANGES];
};

/* Whether an access to so many bytes touches the range. Relaxed loads. Any thread. */
static inline int heddle_touches(const struct heddle_watched_range* range, const void* address, size_t bytes) {
    const uintptr_t at = (uintptr_t)address, begin = __atomic_load_n(&range->begin, __ATOMIC_RELAXED);
    const uintptr_t length = __atomic_load_n(&range->bytes, __ATOMIC_RELAXED);
    return at - begin < length || begin - at < (length != 0 ? bytes : 0);
}

enum heddle_access_kind {
    HEDDLE_ACCESS_LOAD,
    HEDDLE_ACCESS_STORE,
    HEDDLE_ACCESS_ATOMIC /* before and behind it */
};

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/* The ranges, at one address as long as the process. Any thread, at any time. */
const struct heddle_watched* heddle_slow_watched(void);

/* Tells of an access that touches a watched range. caller: the return address of the call that the compiler has put in
 * front of the access. Any thread. */
void heddle_slow_access(const void* address, size_t bytes, enum heddle_access_kind kind, const void* caller);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
