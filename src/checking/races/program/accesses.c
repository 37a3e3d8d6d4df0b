/* The functions that -fsanitize=thread puts into a program, for HEDDLE_RACES: they tell the library of loads and stores
 * where it watches (heddle/accesses.h). In place of the sanitizer's own runtime, and part of the program: an archive,
 * which gcc takes for its libtsan.a. An access where nobody watches costs a call and a look at the address's part. So does
 * every access without HEDDLE_RACES.
 *
 * Threads: any. */
#include <heddle/accesses.h>

#include <stdbool.h>
#include <string.h>

/* Of this thread, by the instruction's address and the block's. */
enum { kRecent = 1024 };
static __thread struct heddle_recent recent_ones[kRecent];

/* Of the library, from __tsan_init on. Relaxed: each thread that comes there stores the same address. */
static const struct heddle_watched nothing, *watched = &nothing;

void __tsan_init(void); /* by a constructor of each file of the program */
void __tsan_init(void) {
    __atomic_store_n(&watched, heddle_slow_watched(), __ATOMIC_RELAXED);
}

static void tell(const void* address, size_t bytes, enum heddle_access_kind kind, const void* caller) {
    const struct heddle_watched* const here = __atomic_load_n(&watched, __ATOMIC_RELAXED);
    for (int i = 0; i < HEDDLE_WATCHED_RANGES; ++i)
        if (heddle_touches(&here->ranges[i], address, bytes)) {
            heddle_slow_access(address, bytes, kind, caller, NULL);
            return;
        }
}

/* Whether it begins in a watched range. An object is in a range, or outside. */
__attribute__((always_inline)) static inline bool begins_in(const struct heddle_watched_range* range,
                                                            const void* address) {
    return (uintptr_t)address - __atomic_load_n(&range->begin, __ATOMIC_RELAXED) <
           __atomic_load_n(&range->bytes, __ATOMIC_RELAXED);
}

__attribute__((always_inline)) static inline bool is_watched(const struct heddle_watched* here, const void* address) {
    _Static_assert(HEDDLE_WATCHED_RANGES == 3, "each range is looked at");
    return begins_in(&here->ranges[0], address) || begins_in(&here->ranges[1], address) ||
           begins_in(&here->ranges[2], address);
}

/* Of a load or store by an instruction: all that it tells of are of one kind. */
__attribute__((always_inline)) static inline void tell_recent(const struct heddle_watched* here, const void* address,
                                                              size_t bytes, enum heddle_access_kind kind,
                                                              const void* caller) {
    /* The blocks of an array lie side by side, those of each instruction from another place on. */
    const uint32_t place = (uint32_t)(uintptr_t)caller * UINT32_C(0x9e3779b1) >> 16;
    struct heddle_recent* const recent = &recent_ones[(place + (uintptr_t)address / HEDDLE_RECENT_BYTES) % kRecent];
    if (!heddle_is_recent(here, recent, address, bytes, caller))
        heddle_slow_access(address, bytes, kind, caller, recent);
}

#define CALLER __builtin_return_address(0)

/* Two functions: what the first one does for an address that nobody watches needs no stack. */
#define PLAIN(name, bytes, kind)                                                                              \
    __attribute__((noinline)) static void tell_##name(const void* address, const struct heddle_watched* here, \
                                                      const void* caller) {                                   \
        if (is_watched(here, address))                                                                        \
            tell_recent(here, address, bytes, kind, caller);                                                  \
    }                                                                                                         \
    void __tsan_##name(void* address);                                                                        \
    void __tsan_##name(void* address) {                                                                       \
        const struct heddle_watched* const here = __atomic_load_n(&watched, __ATOMIC_RELAXED);                \
        if (__builtin_expect(heddle_may_be_watched(here, address), 0))                                        \
            tell_##name(address, here, CALLER);                                                               \
    }
#define LOAD_AND_STORE(bytes)                                 \
    PLAIN(read##bytes, bytes, HEDDLE_ACCESS_LOAD)             \
    PLAIN(write##bytes, bytes, HEDDLE_ACCESS_STORE)           \
    PLAIN(volatile_read##bytes, bytes, HEDDLE_ACCESS_LOAD)    \
    PLAIN(volatile_write##bytes, bytes, HEDDLE_ACCESS_STORE)  \
    PLAIN(read_write##bytes, bytes, HEDDLE_ACCESS_STORE)      \
    PLAIN(unaligned_read##bytes, bytes, HEDDLE_ACCESS_LOAD)   \
    PLAIN(unaligned_write##bytes, bytes, HEDDLE_ACCESS_STORE) \
    PLAIN(unaligned_read_write##bytes, bytes, HEDDLE_ACCESS_STORE)
LOAD_AND_STORE(1)
LOAD_AND_STORE(2)
LOAD_AND_STORE(4)
LOAD_AND_STORE(8)
LOAD_AND_STORE(16)
PLAIN(vptr_read, sizeof(void*), HEDDLE_ACCESS_LOAD)

void __tsan_vptr_update(void** address, void* value);
void __tsan_vptr_update(void** address, void* value) {
    (void)value;
    tell(address, sizeof *address, HEDDLE_ACCESS_STORE, CALLER);
}

void __tsan_read_range(void* address, size_t bytes);
void __tsan_read_range(void* address, size_t bytes) {
    tell(address, bytes, HEDDLE_ACCESS_LOAD, CALLER);
}

void __tsan_write_range(void* address, size_t bytes);
void __tsan_write_range(void* address, size_t bytes) {
    tell(address, bytes, HEDDLE_ACCESS_STORE, CALLER);
}

void __tsan_func_entry(void* caller);
void __tsan_func_entry(void* caller) {
    (void)caller;
}
void __tsan_func_exit(void);
void __tsan_func_exit(void) {}

/* Copies. gcc leaves them to libc: oshcc has the linker wrap them. clang has names of its own. */
#define COPY(prefix, name, real)                                       \
    void* prefix##name(void* dest, const void* source, size_t bytes);  \
    void* prefix##name(void* dest, const void* source, size_t bytes) { \
        tell(source, bytes, HEDDLE_ACCESS_LOAD, CALLER);               \
        tell(dest, bytes, HEDDLE_ACCESS_STORE, CALLER);                \
        return real(dest, source, bytes);                              \
    }
#define FILL(prefix, real)                                 \
    void* prefix##memset(void* dest, int byte, size_t n);  \
    void* prefix##memset(void* dest, int byte, size_t n) { \
        tell(dest, n, HEDDLE_ACCESS_STORE, CALLER);        \
        return real(dest, byte, n);                        \
    }
void* __real_memcpy(void* dest, const void* source, size_t bytes);
void* __real_memmove(void* dest, const void* source, size_t bytes);
void* __real_memset(void* dest, int byte, size_t bytes);
COPY(__wrap_, memcpy, __real_memcpy)
COPY(__wrap_, memmove, __real_memmove)
FILL(__wrap_, __real_memset)
COPY(__tsan_, memcpy, __real_memcpy)
COPY(__tsan_, memmove, __real_memmove)
FILL(__tsan_, __real_memset)

/* Atomics of the language, which a program may use with shmem_ptr. Each is sequentially consistent, whatever it asks
 * for. */
#define AROUND(bytes, statement)                                     \
    tell((const void*)address, bytes, HEDDLE_ACCESS_ATOMIC, CALLER); \
    statement;                                                       \
    tell((const void*)address, bytes, HEDDLE_ACCESS_ATOMIC, CALLER);

#define UPDATE(bits, name, builtin)                                                                                  \
    uint##bits##_t __tsan_atomic##bits##_##name(volatile uint##bits##_t* address, uint##bits##_t value, int order);  \
    uint##bits##_t __tsan_atomic##bits##_##name(volatile uint##bits##_t* address, uint##bits##_t value, int order) { \
        (void)order;                                                                                                 \
        AROUND(bits / 8, const uint##bits##_t before = builtin(address, value, __ATOMIC_SEQ_CST))                    \
        return before;                                                                                               \
    }

#define COMPARE(bits, name)                                                                                            \
    int __tsan_atomic##bits##_##name(volatile uint##bits##_t* address, uint##bits##_t* expected, uint##bits##_t value, \
                                     int order, int fail_order);                                                       \
    int __tsan_atomic##bits##_##name(volatile uint##bits##_t* address, uint##bits##_t* expected, uint##bits##_t value, \
                                     int order, int fail_order) {                                                      \
        (void)order, (void)fail_order;                                                                                 \
        AROUND(bits / 8, const bool done = __atomic_compare_exchange_n(address, expected, value, false,                \
                                                                       __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))            \
        return done;                                                                                                   \
    }

#define ATOMICS(bits)                                                                                                 \
    uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t* address, int order);                     \
    uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t* address, int order) {                    \
        (void)order;                                                                                                  \
        AROUND(bits / 8, const uint##bits##_t value = __atomic_load_n(address, __ATOMIC_SEQ_CST))                     \
        return value;                                                                                                 \
    }                                                                                                                 \
    void __tsan_atomic##bits##_store(volatile uint##bits##_t* address, uint##bits##_t value, int order);              \
    void __tsan_atomic##bits##_store(volatile uint##bits##_t* address, uint##bits##_t value, int order) {             \
        (void)order;                                                                                                  \
        AROUND(bits / 8, __atomic_store_n(address, value, __ATOMIC_SEQ_CST))                                          \
    }                                                                                                                 \
    UPDATE(bits, exchange, __atomic_exchange_n)                                                                       \
    UPDATE(bits, fetch_add, __atomic_fetch_add)                                                                       \
    UPDATE(bits, fetch_sub, __atomic_fetch_sub)                                                                       \
    UPDATE(bits, fetch_and, __atomic_fetch_and)                                                                       \
    UPDATE(bits, fetch_or, __atomic_fetch_or)                                                                         \
    UPDATE(bits, fetch_xor, __atomic_fetch_xor)                                                                       \
    UPDATE(bits, fetch_nand, __atomic_fetch_nand)                                                                     \
    COMPARE(bits, compare_exchange_strong)                                                                            \
    COMPARE(bits, compare_exchange_weak)                                                                              \
    uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(                                                        \
        volatile uint##bits##_t* address, uint##bits##_t expected, uint##bits##_t value, int order, int fail_order);  \
    uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(                                                        \
        volatile uint##bits##_t* address, uint##bits##_t expected, uint##bits##_t value, int order, int fail_order) { \
        __tsan_atomic##bits##_compare_exchange_strong(address, &expected, value, order, fail_order);                  \
        return expected;                                                                                              \
    }
ATOMICS(8)
ATOMICS(16)
ATOMICS(32)
ATOMICS(64)

void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_thread_fence(int order) {
    (void)order;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
void __tsan_atomic_signal_fence(int order);
void __tsan_atomic_signal_fence(int order) {
    (void)order;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}
