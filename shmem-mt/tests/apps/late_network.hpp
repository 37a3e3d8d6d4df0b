// An OpenSHMEM that delivers late and in another order, for a program that is compiled with -include of this file: the
// calls named at its end are replaced by those of namespace late.
//
// OpenSHMEM 1.6 orders updates by fences, quiets and barriers alone, and a signal behind its own data (9.8, 9.12). So
// of what an even PE sends to one PE, a message waits for kLateS unless a fence, a quiet or a barrier comes first, and
// later ones overtake it. The source of a non-blocking put is read when the message leaves. The program ends with
// status 3 and a line on stderr
//   where a word is updated while an older update of it waits: the older one would land last;
//   where a word is updated or read as a signal and in another way, too: such updates are not atomic (9.8.1).
#pragma once

#include <sched.h>
#include <shmem.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <list>
#include <map>
#include <mutex>
#include <vector>

#if __has_include(<shmemx.h>)
#include <shmemx.h>
#endif

namespace late {

constexpr double kLateS = 3e-4;

enum class Kind { kPut, kSignal, kSet };

struct Message {
    Kind kind;
    void* dest;
    const void* source;
    size_t bytes;
    void* word;  // null: there is none
    uint64_t value;
    int pe;
    std::vector<char> copy = {};
    double due = 0;
};

inline std::mutex mutex;
inline std::list<Message> waiting;
inline std::map<const void*, bool> is_signal;  // of words

[[noreturn]] inline void end(const char* what, const void* word, int pe) {
    std::fprintf(stderr, "late network: PE %d: the word %p of PE %d %s\n", shmem_my_pe(), word, pe, what);
    shmem_global_exit(3);
    for (;;) sched_yield();
}

inline double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Those below are called with the mutex locked.

inline void note(const void* word, bool signal) {
    if (is_signal.emplace(word, signal).first->second != signal)
        end("is used as a signal and in another way", word, shmem_my_pe());
}

inline void deliver(const Message& message) {
    const void* const source = message.copy.empty() ? message.source : message.copy.data();
    if (message.kind == Kind::kPut)
        shmem_putmem(message.dest, source, message.bytes, message.pe);
    else if (message.kind == Kind::kSet)
        shmem_long_atomic_set(static_cast<long*>(message.word), static_cast<long>(message.value), message.pe);
#if SHMEM_MT_HAVE_PUT_SIGNAL
    else
        shmem_putmem_signal(message.dest, source, message.bytes, static_cast<uint64_t*>(message.word), message.value,
                            SHMEM_SIGNAL_SET, message.pe);
#endif
}

// The newest first.
inline void deliver_due(double until) {
    for (auto at = waiting.end(); at != waiting.begin();) {
        if ((--at)->due > until)
            continue;
        deliver(*at);
        at = waiting.erase(at);
    }
}

// Those below lock it.

inline void send(Message message, bool copied) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (message.word != nullptr)
        note(message.word, message.kind == Kind::kSignal);
    bool overtakes = shmem_my_pe() % 2 != 0;
    for (const Message& older : waiting) {
        overtakes = overtakes || older.pe == message.pe;
        if (message.word != nullptr && older.word == message.word && older.pe == message.pe)
            end("has two updates under way", message.word, message.pe);
    }
    if (overtakes)
        return deliver(message);
    if (copied)
        message.copy.assign(static_cast<const char*>(message.source),
                            static_cast<const char*>(message.source) + message.bytes);
    message.due = now() + kLateS;
    waiting.push_back(std::move(message));
}

inline void poll() {
    const std::lock_guard<std::mutex> lock(mutex);
    deliver_due(now());
}

inline void flush() {
    const std::lock_guard<std::mutex> lock(mutex);
    deliver_due(1e300);
}

template <class Call>
auto behind_all(Call&& call) {
    flush();
    return call();
}

inline void note_read(const void* word, bool signal) {
    const std::lock_guard<std::mutex> lock(mutex);
    note(word, signal);
}

inline void putmem(void* dest, const void* source, size_t bytes, int pe) {
    send({Kind::kPut, dest, source, bytes, nullptr, 0, pe}, true);
}
inline void putmem_nbi(void* dest, const void* source, size_t bytes, int pe) {
    send({Kind::kPut, dest, source, bytes, nullptr, 0, pe}, false);
}
inline void set(long* dest, long value, int pe) {
    send({Kind::kSet, nullptr, nullptr, 0, dest, static_cast<uint64_t>(value), pe}, false);
}
inline int test(long* word, int cmp, long value) {
    poll();
    note_read(word, false);
    return shmem_long_test(word, cmp, value);
}
inline void wait_until(long* word, int cmp, long value) {
    while (!test(word, cmp, value)) sched_yield();
}
#if SHMEM_MT_HAVE_PUT_SIGNAL
inline void put_signal(void* dest, const void* source, size_t bytes, uint64_t* signal, uint64_t value, int, int pe) {
    send({Kind::kSignal, dest, source, bytes, signal, value, pe}, true);
}
inline void put_signal_nbi(void* dest, const void* source, size_t bytes, uint64_t* signal, uint64_t value, int,
                           int pe) {
    send({Kind::kSignal, dest, source, bytes, signal, value, pe}, false);
}
inline int test_signal(uint64_t* signal, int cmp, uint64_t value) {
    poll();
    note_read(signal, true);
    return shmem_uint64_test(signal, cmp, value);
}
inline uint64_t await_signal(uint64_t* signal, int cmp, uint64_t value) {
    while (!test_signal(signal, cmp, value)) sched_yield();
    return shmem_signal_fetch(signal);
}
#endif
inline void free(void* memory) {
    flush();
    {
        const std::lock_guard<std::mutex> lock(mutex);
        is_signal.clear();  // of what comes there next, too
    }
    shmem_free(memory);
}

// Messages leave through the default context, whichever they were sent through.
inline void quiet() {
    flush();
    shmem_quiet();
}

}  // namespace late

#define shmem_putmem(...) late::putmem(__VA_ARGS__)
#define shmem_putmem_nbi(...) late::putmem_nbi(__VA_ARGS__)
#define shmem_long_p(...) late::set(__VA_ARGS__)
#define shmem_long_atomic_set(...) late::set(__VA_ARGS__)
#define shmem_long_test(...) late::test(__VA_ARGS__)
#define shmem_long_wait_until(...) late::wait_until(__VA_ARGS__)
#define shmem_ctx_putmem(ctx, ...) late::putmem(__VA_ARGS__)
#define shmem_ctx_putmem_nbi(ctx, ...) late::putmem_nbi(__VA_ARGS__)
#define shmem_ctx_long_p(ctx, ...) late::set(__VA_ARGS__)
#define shmem_ctx_long_atomic_set(ctx, ...) late::set(__VA_ARGS__)
#define shmem_putmem_signal(...) late::put_signal(__VA_ARGS__)
#define shmem_putmem_signal_nbi(...) late::put_signal_nbi(__VA_ARGS__)
#define shmem_ctx_putmem_signal(ctx, ...) late::put_signal(__VA_ARGS__)
#define shmem_ctx_putmem_signal_nbi(ctx, ...) late::put_signal_nbi(__VA_ARGS__)
#define shmem_uint64_test(...) late::test_signal(__VA_ARGS__)
#define shmem_signal_wait_until(...) late::await_signal(__VA_ARGS__)
#define shmem_fence() late::flush()
#define shmem_ctx_fence(ctx) late::flush()
#define shmem_quiet() late::quiet()
#define shmem_ctx_quiet(ctx) (late::quiet(), shmem_ctx_quiet(ctx))
#define shmem_barrier_all() late::behind_all([&] { shmem_barrier_all(); })
#define shmem_finalize() late::behind_all([&] { shmem_finalize(); })
#define shmem_long_sum_reduce(...) late::behind_all([&] { return shmem_long_sum_reduce(__VA_ARGS__); })
#define shmem_double_sum_reduce(...) late::behind_all([&] { return shmem_double_sum_reduce(__VA_ARGS__); })
#define shmem_double_fcollect(...) late::behind_all([&] { return shmem_double_fcollect(__VA_ARGS__); })
#define shmem_long_sum_to_all(...) late::behind_all([&] { shmem_long_sum_to_all(__VA_ARGS__); })
#define shmem_double_sum_to_all(...) late::behind_all([&] { shmem_double_sum_to_all(__VA_ARGS__); })
#define shmem_fcollect64(...) late::behind_all([&] { shmem_fcollect64(__VA_ARGS__); })
#define shmemx_request_wait(...) late::behind_all([&] { return shmemx_request_wait(__VA_ARGS__); })
#define shmem_free(...) late::free(__VA_ARGS__)
