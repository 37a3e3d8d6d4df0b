// How an operation leaves the caller: through the default context, through a context of its own or shared by all
// threads, or (the reference lines) by plain loads and stores. The three classes have the same members, so that one
// loop is written once and the compiler makes a direct version for each; nothing is decided per message.
#pragma once

#include <shmem.h>

#include <atomic>
#include <cstdint>
#include <cstring>

// The driver finds out by compiling a few lines and says so with -D; without a driver the version decides.
#ifndef SHMEM_MT_HAVE_CTX
#if SHMEM_MAJOR_VERSION > 1 || (SHMEM_MAJOR_VERSION == 1 && SHMEM_MINOR_VERSION >= 4)
#define SHMEM_MT_HAVE_CTX 1
#else
#define SHMEM_MT_HAVE_CTX 0
#endif
#endif
#ifndef SHMEM_MT_HAVE_PUT_SIGNAL
#if SHMEM_MAJOR_VERSION > 1 || (SHMEM_MAJOR_VERSION == 1 && SHMEM_MINOR_VERSION >= 5)
#define SHMEM_MT_HAVE_PUT_SIGNAL 1
#else
#define SHMEM_MT_HAVE_PUT_SIGNAL 0
#endif
#endif
#ifndef SHMEM_MT_HAVE_TEAM_COLLECTIVES
#if SHMEM_MAJOR_VERSION > 1 || (SHMEM_MAJOR_VERSION == 1 && SHMEM_MINOR_VERSION >= 5)
#define SHMEM_MT_HAVE_TEAM_COLLECTIVES 1
#else
#define SHMEM_MT_HAVE_TEAM_COLLECTIVES 0
#endif
#endif

#ifndef SHMEM_MT_HAVE_FETCH_NBI
#define SHMEM_MT_HAVE_FETCH_NBI SHMEM_MT_HAVE_PUT_SIGNAL
#endif
#ifndef SHMEM_MT_HAVE_PE_QUIET
#if SHMEM_MAJOR_VERSION > 1 || (SHMEM_MAJOR_VERSION == 1 && SHMEM_MINOR_VERSION >= 6)
#define SHMEM_MT_HAVE_PE_QUIET 1
#else
#define SHMEM_MT_HAVE_PE_QUIET 0
#endif
#endif

// An implementation may define shmem_ctx_t as a pointer to an unnamed struct, which gcc warns about in
// members.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wsubobject-linkage"
#endif

namespace shmem_mt {

// kSharedContext: one context, made without options, that all threads of the PE use. kPrivateContext: one a thread.
enum class Route { kDefaultContext, kSharedContext, kPrivateContext, kPlainPeer, kPlainPrivate };

struct DefaultLink {
    void p(long* dest, long value, int pe) const { shmem_long_p(dest, value, pe); }
    long g(const long* source, int pe) const { return shmem_long_g(source, pe); }
    void put(void* dest, const void* source, size_t bytes, int pe) const { shmem_putmem(dest, source, bytes, pe); }
    void get(void* dest, const void* source, size_t bytes, int pe) const { shmem_getmem(dest, source, bytes, pe); }
    void put_nbi(void* dest, const void* source, size_t bytes, int pe) const {
        shmem_putmem_nbi(dest, source, bytes, pe);
    }
    void get_nbi(void* dest, const void* source, size_t bytes, int pe) const {
        shmem_getmem_nbi(dest, source, bytes, pe);
    }
    void add(long* dest, long value, int pe) const { shmem_long_atomic_add(dest, value, pe); }
    long fetch_add(long* dest, long value, int pe) const { return shmem_long_atomic_fetch_add(dest, value, pe); }
    void fetch_add_nbi(long* fetch, long* dest, long value, int pe) const {
#if SHMEM_MT_HAVE_FETCH_NBI
        shmem_long_atomic_fetch_add_nbi(fetch, dest, value, pe);
#else
        *fetch = fetch_add(dest, value, pe);
#endif
    }
    long fetch(const long* source, int pe) const { return shmem_long_atomic_fetch(source, pe); }
    long compare_swap(long* dest, long cond, long value, int pe) const {
        return shmem_long_atomic_compare_swap(dest, cond, value, pe);
    }
    void fetch_nbi(long* fetched, const long* source, int pe) const {
#if SHMEM_MT_HAVE_FETCH_NBI
        shmem_long_atomic_fetch_nbi(fetched, source, pe);
#else
        *fetched = fetch(source, pe);
#endif
    }
    void compare_swap_nbi(long* fetched, long* dest, long cond, long value, int pe) const {
#if SHMEM_MT_HAVE_FETCH_NBI
        shmem_long_atomic_compare_swap_nbi(fetched, dest, cond, value, pe);
#else
        *fetched = compare_swap(dest, cond, value, pe);
#endif
    }
    void exclusive_or(uint64_t* dest, uint64_t value, int pe) const { shmem_uint64_atomic_xor(dest, value, pe); }
    void set(long* dest, long value, int pe) const { shmem_long_atomic_set(dest, value, pe); }
    void fence() const { shmem_fence(); }
    void quiet() const { shmem_quiet(); }
#if SHMEM_MT_HAVE_PE_QUIET
    void pe_quiet(const int* pes, size_t count) const { shmem_pe_quiet(pes, count); }
#endif
#if SHMEM_MT_HAVE_PUT_SIGNAL
    void put_signal(void* dest, const void* source, size_t bytes, uint64_t* signal, uint64_t value, int pe) const {
        shmem_putmem_signal(dest, source, bytes, signal, value, SHMEM_SIGNAL_SET, pe);
    }
    void put_signal_nbi(void* dest, const void* source, size_t bytes, uint64_t* signal, uint64_t value, int pe) const {
        shmem_putmem_signal_nbi(dest, source, bytes, signal, value, SHMEM_SIGNAL_SET, pe);
    }
#endif
};

#if SHMEM_MT_HAVE_CTX
struct ContextLink {
    shmem_ctx_t ctx;

    void p(long* dest, long value, int pe) const { shmem_ctx_long_p(ctx, dest, value, pe); }
    long g(const long* source, int pe) const { return shmem_ctx_long_g(ctx, source, pe); }
    void put(void* dest, const void* source, size_t bytes, int pe) const {
        shmem_ctx_putmem(ctx, dest, source, bytes, pe);
    }
    void get(void* dest, const void* source, size_t bytes, int pe) const {
        shmem_ctx_getmem(ctx, dest, source, bytes, pe);
    }
    void put_nbi(void* dest, const void* source, size_t bytes, int pe) const {
        shmem_ctx_putmem_nbi(ctx, dest, source, bytes, pe);
    }
    void get_nbi(void* dest, const void* source, size_t bytes, int pe) const {
        shmem_ctx_getmem_nbi(ctx, dest, source, bytes, pe);
    }
    void add(long* dest, long value, int pe) const { shmem_ctx_long_atomic_add(ctx, dest, value, pe); }
    long fetch_add(long* dest, long value, int pe) const {
        return shmem_ctx_long_atomic_fetch_add(ctx, dest, value, pe);
    }
    void fetch_add_nbi(long* fetch, long* dest, long value, int pe) const {
#if SHMEM_MT_HAVE_FETCH_NBI
        shmem_ctx_long_atomic_fetch_add_nbi(ctx, fetch, dest, value, pe);
#else
        *fetch = fetch_add(dest, value, pe);
#endif
    }
    long fetch(const long* source, int pe) const { return shmem_ctx_long_atomic_fetch(ctx, source, pe); }
    long compare_swap(long* dest, long cond, long value, int pe) const {
        return shmem_ctx_long_atomic_compare_swap(ctx, dest, cond, value, pe);
    }
    void fetch_nbi(long* fetched, const long* source, int pe) const {
#if SHMEM_MT_HAVE_FETCH_NBI
        shmem_ctx_long_atomic_fetch_nbi(ctx, fetched, source, pe);
#else
        *fetched = fetch(source, pe);
#endif
    }
    void compare_swap_nbi(long* fetched, long* dest, long cond, long value, int pe) const {
#if SHMEM_MT_HAVE_FETCH_NBI
        shmem_ctx_long_atomic_compare_swap_nbi(ctx, fetched, dest, cond, value, pe);
#else
        *fetched = compare_swap(dest, cond, value, pe);
#endif
    }
    void exclusive_or(uint64_t* dest, uint64_t value, int pe) const {
        shmem_ctx_uint64_atomic_xor(ctx, dest, value, pe);
    }
    void set(long* dest, long value, int pe) const { shmem_ctx_long_atomic_set(ctx, dest, value, pe); }
    void fence() const { shmem_ctx_fence(ctx); }
    void quiet() const { shmem_ctx_quiet(ctx); }
#if SHMEM_MT_HAVE_PE_QUIET
    void pe_quiet(const int* pes, size_t count) const { shmem_ctx_pe_quiet(ctx, pes, count); }
#endif
#if SHMEM_MT_HAVE_PUT_SIGNAL
    void put_signal(void* dest, const void* source, size_t bytes, uint64_t* signal, uint64_t value, int pe) const {
        shmem_ctx_putmem_signal(ctx, dest, source, bytes, signal, value, SHMEM_SIGNAL_SET, pe);
    }
    void put_signal_nbi(void* dest, const void* source, size_t bytes, uint64_t* signal, uint64_t value, int pe) const {
        shmem_ctx_putmem_signal_nbi(ctx, dest, source, bytes, signal, value, SHMEM_SIGNAL_SET, pe);
    }
#endif
};
#endif

// The reference: addresses are already the peer's mapping (or private memory) and `pe` is ignored. Single
// values are relaxed atomics, which the compiler can neither merge into vectors nor drop; blocks are memcpy.
struct PlainLink {
    void p(long* dest, long value, int) const { __atomic_store_n(dest, value, __ATOMIC_RELAXED); }
    long g(const long* source, int) const { return __atomic_load_n(source, __ATOMIC_RELAXED); }
    void put(void* dest, const void* source, size_t bytes, int) const { std::memcpy(dest, source, bytes); }
    void get(void* dest, const void* source, size_t bytes, int) const { std::memcpy(dest, source, bytes); }
    void put_nbi(void* dest, const void* source, size_t bytes, int) const { std::memcpy(dest, source, bytes); }
    void get_nbi(void* dest, const void* source, size_t bytes, int) const { std::memcpy(dest, source, bytes); }
    void add(long* dest, long value, int) const { __atomic_fetch_add(dest, value, __ATOMIC_RELAXED); }
    long fetch_add(long* dest, long value, int) const { return __atomic_fetch_add(dest, value, __ATOMIC_RELAXED); }
    void fetch_add_nbi(long* fetch, long* dest, long value, int pe) const { *fetch = fetch_add(dest, value, pe); }
    long fetch(const long* source, int) const { return __atomic_load_n(source, __ATOMIC_RELAXED); }
    long compare_swap(long* dest, long cond, long value, int) const {
        __atomic_compare_exchange_n(dest, &cond, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
        return cond;
    }
    void exclusive_or(uint64_t* dest, uint64_t value, int) const { __atomic_fetch_xor(dest, value, __ATOMIC_RELAXED); }
    void fence() const { std::atomic_thread_fence(std::memory_order_release); }
    void quiet() const { std::atomic_thread_fence(std::memory_order_seq_cst); }
};

}  // namespace shmem_mt
