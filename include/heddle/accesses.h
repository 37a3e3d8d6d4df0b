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
/* The address space in parts of 2^part_bits bytes. Parts whose numbers are the same modulo HEDDLE_PARTS share a byte:
 * not 0 where an address in a range may be. */
#define HEDDLE_PARTS 65536
#define HEDDLE_LEAST_PART_BITS 18
struct heddle_watched {
    struct heddle_watched_range ranges[HEDDLE_WATCHED_RANGES];
    uint64_t epoch; /* changes where a struct heddle_recent may be no longer valid */
    uint64_t part_bits;
    unsigned char parts[HEDDLE_PARTS];
};

/* False: no range holds the address. Relaxed loads. Any thread. */
static inline int heddle_may_be_watched(const struct heddle_watched* watched, const void* address) {
    const uintptr_t part = (uintptr_t)address >> (__atomic_load_n(&watched->part_bits, __ATOMIC_RELAXED) % 64);
    return __atomic_load_n(&watched->parts[part % HEDDLE_PARTS], __ATOMIC_RELAXED) != 0;
}

/* Whether an access to so many bytes touches the range. Relaxed loads. Any thread. */
static inline int heddle_touches(const struct heddle_watched_range* range, const void* address, size_t bytes) {
    const uintptr_t at = (uintptr_t)address, begin = __atomic_load_n(&range->begin, __ATOMIC_RELAXED);
    const uintptr_t length = __atomic_load_n(&range->bytes, __ATOMIC_RELAXED);
    return at - begin < length || begin - at < (length != 0 ? bytes : 0);
}

#define HEDDLE_RECENT_BYTES 512

/* Where a thread has last told of accesses by one instruction of the program: in the same 512 bytes, and the same
 * epoch, the next one is a bit. Zeroes: nowhere. */
struct heddle_recent {
    const void* caller;
    uintptr_t begin; /* of the 512 bytes */
    uint64_t epoch;
    uint64_t* bits; /* one for each of these bytes */
};

static inline uint64_t heddle_epoch(const struct heddle_watched* watched) {
    return __atomic_load_n(&watched->epoch, __ATOMIC_RELAXED);
}

/* Notes the access, and returns 1, where it is like those before. The recent one is the calling thread's. Relaxed: another
 * thread that takes the bits meanwhile misses this one, which has no order with what that thread does. */
static inline int heddle_is_recent(const struct heddle_watched* watched, const struct heddle_recent* recent,
                                   const void* address, size_t bytes, const void* caller) {
    const uintptr_t at = (uintptr_t)address - recent->begin, bit = at % 64;
    uint64_t* word;
    if (recent->caller != caller || at >= HEDDLE_RECENT_BYTES || recent->epoch != heddle_epoch(watched))
        return 0;
    if (bytes == 8 && bit % 8 == 0) { /* the bits of a word are a byte: little-endian */
        __atomic_store_n((unsigned char*)recent->bits + at / 8, 0xff, __ATOMIC_RELAXED);
        return 1;
    }
    if (bit + bytes > 64)
        return 0;
    word = recent->bits + at / 64;
    __atomic_store_n(word, __atomic_load_n(word, __ATOMIC_RELAXED) | ((UINT64_C(1) << bytes) - 1) << bit,
                     __ATOMIC_RELAXED);
    return 1;
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
 * front of the access. recent: set where further ones may be told of by bits; may be null. Any thread. */
void heddle_slow_access(const void* address, size_t bytes, enum heddle_access_kind kind, const void* caller,
                        struct heddle_recent* recent);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
