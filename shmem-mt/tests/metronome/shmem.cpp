// OpenSHMEM over the job's virtual time (world.hpp): each call takes what the settings say, and no more.
#include "shmem.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#include "context.hpp"
#include "world.hpp"

using namespace metronome;

namespace {

metronome_context default_context;
long contexts_counted;  // that were destroyed and had moved what METRONOME_COUNT asks for
size_t heap_used;       // bytes of the symmetric heap
size_t last_allocated;  // where the last allocation begins: shmem_free gives back that one alone
size_t last_before;

// At the target `flight` after now.
void send_by(shmem_ctx_t ctx, void* dest, const void* source, size_t bytes, int pe, bool adds = false) {
    const Picoseconds time = self->clock + settings.flight.of();
    ctx->complete = std::max(ctx->complete, time);
    send(pe, dest, source, bytes, time, adds);
}

// Copies from a PE to private memory of this one. What a planted fault delays never comes, for the memory may be gone.
void bring(void* dest, const char* source, size_t bytes) {
    if (!goes_wrong(bytes) || settings.fault == Fault::kDouble)
        std::memcpy(dest, source, bytes);
    else if (settings.fault == Fault::kTear)
        std::memcpy(dest, source, bytes / 2);
}

// Within `flight` from now; quiet waits for it.
template <class F>
void do_in_flight(shmem_ctx_t ctx, F&& todo) {
    const Picoseconds time = self->clock + settings.flight.of();
    ctx->complete = std::max(ctx->complete, time);
    later(time, todo);
}

template <class F>
long update(shmem_ctx_t ctx, const Cost& cost, long* dest, int pe, F&& change) {
    move(ctx, cost, 8);
    long value;
    char* const word = at(dest, pe);
    std::memcpy(&value, word, 8);
    const long changed = change(value);
    std::memcpy(word, &changed, 8);
    notify(pe);
    return value;
}

}  // namespace

shmem_ctx_t SHMEM_CTX_DEFAULT = &default_context;

void move(shmem_ctx_t ctx, const Cost& cost, size_t bytes) {
    if ((ctx->options & SHMEM_CTX_PRIVATE) != 0 && ctx->creator != self)
        fatal("a thread uses the private context of another");
    ctx->moves += settings.count_bytes == bytes;
    spend_moving(cost, bytes);
}

void update_in_flight(shmem_ctx_t ctx, long* fetch, long* dest, int pe, const std::function<long(long)>& change) {
    move(ctx, settings.get_nbi, 8);
    char* const word = at(dest, pe);
    do_in_flight(ctx, [=] {
        long old;
        std::memcpy(&old, word, 8);
        const long changed = change(old);
        std::memcpy(word, &changed, 8);
        notify(pe);
        if (fetch != nullptr)
            *fetch = old;
    });
}

// ---- setup ----

int shmem_init_thread(int requested, int* provided) {
    enter();
    *provided = requested;
    return 0;
}

void shmem_init() {
    enter();
}

void shmem_finalize() {
    if (settings.count_bytes > 0)
        std::fprintf(stderr, "metronome: PE %d: contexts %ld, default %ld\n", me, contexts_counted,
                     default_context.moves);
    leave();
}

void shmem_global_exit(int status) {
    _exit(status);
}

int shmem_my_pe() {
    return me;
}

int shmem_n_pes() {
    return world->n_pes;
}

void shmem_info_get_name(char* name) {
    std::strcpy(name, "metronome");
}

void shmem_info_get_version(int* major, int* minor) {
    *major = SHMEM_MAJOR_VERSION;
    *minor = SHMEM_MINOR_VERSION;
}

// ---- memory ----

void* shmem_align(size_t alignment, size_t bytes) {
    const size_t begin = (heap_used + alignment - 1) / alignment * alignment;
    void* memory = nullptr;
    if (begin + bytes <= kHeapBytes) {
        last_before = heap_used;
        last_allocated = begin;
        heap_used = begin + bytes;
        memory = memory_of(me) + kStaticBytes + begin;
    }
    shmem_barrier_all();
    return memory;
}

void* shmem_malloc(size_t bytes) {
    return shmem_align(64, bytes);
}

void shmem_free(void* memory) {
    shmem_barrier_all();
    if (memory == memory_of(me) + kStaticBytes + last_allocated)
        heap_used = last_before;
}

void* shmem_ptr(const void*, int) {
    return nullptr;
}

// ---- contexts ----

int shmem_ctx_create(long options, shmem_ctx_t* ctx) {
    *ctx = new metronome_context{0, options, self, 0};
    return 0;
}

void shmem_ctx_destroy(shmem_ctx_t ctx) {
    complete(ctx);
    contexts_counted += ctx->moves > 0;
    delete ctx;
}

// ---- puts, gets, atomics ----

void shmem_ctx_long_p(shmem_ctx_t ctx, long* dest, long value, int pe) {
    shmem_ctx_putmem(ctx, dest, &value, 8, pe);
}

long shmem_ctx_long_g(shmem_ctx_t ctx, const long* source, int pe) {
    long value = 0;
    shmem_ctx_getmem(ctx, &value, source, 8, pe);
    return value;
}

void shmem_ctx_putmem(shmem_ctx_t ctx, void* dest, const void* source, size_t bytes, int pe) {
    move(ctx, settings.put, bytes);
    send_by(ctx, dest, source, bytes, pe);
}

void shmem_ctx_putmem_nbi(shmem_ctx_t ctx, void* dest, const void* source, size_t bytes, int pe) {
    move(ctx, settings.put_nbi, bytes);
    send_by(ctx, dest, source, bytes, pe);
}

void shmem_ctx_getmem(shmem_ctx_t ctx, void* dest, const void* source, size_t bytes, int pe) {
    move(ctx, settings.get, bytes);
    bring(dest, at(source, pe), bytes);
}

void shmem_ctx_getmem_nbi(shmem_ctx_t ctx, void* dest, const void* source, size_t bytes, int pe) {
    move(ctx, settings.get_nbi, bytes);
    const char* const from = at(source, pe);
    do_in_flight(ctx, [=] { bring(dest, from, bytes); });
}

void shmem_ctx_putmem_signal(shmem_ctx_t ctx, void* dest, const void* source, size_t bytes, uint64_t* signal,
                             uint64_t value, int, int pe) {
    move(ctx, settings.put, bytes);
    spend(settings.signal.of());
    send_by(ctx, dest, source, bytes, pe);
    send_by(ctx, signal, &value, 8, pe);
}

void shmem_ctx_putmem_signal_nbi(shmem_ctx_t ctx, void* dest, const void* source, size_t bytes, uint64_t* signal,
                                 uint64_t value, int, int pe) {
    move(ctx, settings.put_nbi, bytes);
    spend(settings.signal.of());
    send_by(ctx, dest, source, bytes, pe);
    send_by(ctx, signal, &value, 8, pe);
}

void shmem_ctx_long_atomic_add(shmem_ctx_t ctx, long* dest, long value, int pe) {
    move(ctx, settings.atomic, 8);
    send_by(ctx, dest, &value, 8, pe, true);
}

long shmem_ctx_long_atomic_fetch(shmem_ctx_t ctx, const long* source, int pe) {
    return update(ctx, settings.fetch, const_cast<long*>(source), pe, [](long old) { return old; });
}

long shmem_ctx_long_atomic_fetch_add(shmem_ctx_t ctx, long* dest, long value, int pe) {
    return update(ctx, settings.fetch, dest, pe, [=](long old) { return old + value; });
}

void shmem_ctx_long_atomic_fetch_add_nbi(shmem_ctx_t ctx, long* fetch, long* dest, long value, int pe) {
    update_in_flight(ctx, fetch, dest, pe, [=](long old) { return old + value; });
}

long shmem_ctx_long_atomic_compare_swap(shmem_ctx_t ctx, long* dest, long cond, long value, int pe) {
    return update(ctx, settings.fetch, dest, pe, [=](long old) { return old == cond ? value : old; });
}

void shmem_ctx_long_atomic_set(shmem_ctx_t ctx, long* dest, long value, int pe) {
    update(ctx, settings.atomic, dest, pe, [=](long) { return value; });
}

void shmem_ctx_long_atomic_fetch_nbi(shmem_ctx_t ctx, long* fetch, const long* source, int pe) {
    update_in_flight(ctx, fetch, const_cast<long*>(source), pe, [](long old) { return old; });
}

void shmem_ctx_long_atomic_compare_swap_nbi(shmem_ctx_t ctx, long* fetch, long* dest, long cond, long value, int pe) {
    update_in_flight(ctx, fetch, dest, pe, [=](long old) { return old == cond ? value : old; });
}

void shmem_ctx_uint64_atomic_xor(shmem_ctx_t ctx, uint64_t* dest, uint64_t value, int pe) {
    update(ctx, settings.fetch, reinterpret_cast<long*>(dest), pe,
           [=](long old) { return old ^ static_cast<long>(value); });
}

void shmem_ctx_fence(shmem_ctx_t) {
    spend(settings.fence.of());
}

void shmem_ctx_quiet(shmem_ctx_t ctx) {
    complete(ctx);
    spend(settings.quiet.of());
}

// What is on its way to other PEs is there as soon.
void shmem_ctx_pe_quiet(shmem_ctx_t ctx, const int*, size_t) {
    shmem_ctx_quiet(ctx);
}

// ---- through the default context ----

void shmem_long_p(long* dest, long value, int pe) {
    shmem_ctx_long_p(SHMEM_CTX_DEFAULT, dest, value, pe);
}

long shmem_long_g(const long* source, int pe) {
    return shmem_ctx_long_g(SHMEM_CTX_DEFAULT, source, pe);
}

void shmem_putmem(void* dest, const void* source, size_t bytes, int pe) {
    shmem_ctx_putmem(SHMEM_CTX_DEFAULT, dest, source, bytes, pe);
}

void shmem_putmem_nbi(void* dest, const void* source, size_t bytes, int pe) {
    shmem_ctx_putmem_nbi(SHMEM_CTX_DEFAULT, dest, source, bytes, pe);
}

void shmem_getmem(void* dest, const void* source, size_t bytes, int pe) {
    shmem_ctx_getmem(SHMEM_CTX_DEFAULT, dest, source, bytes, pe);
}

void shmem_getmem_nbi(void* dest, const void* source, size_t bytes, int pe) {
    shmem_ctx_getmem_nbi(SHMEM_CTX_DEFAULT, dest, source, bytes, pe);
}

void shmem_putmem_signal(void* dest, const void* source, size_t bytes, uint64_t* signal, uint64_t value, int operation,
                         int pe) {
    shmem_ctx_putmem_signal(SHMEM_CTX_DEFAULT, dest, source, bytes, signal, value, operation, pe);
}

void shmem_putmem_signal_nbi(void* dest, const void* source, size_t bytes, uint64_t* signal, uint64_t value,
                             int operation, int pe) {
    shmem_ctx_putmem_signal_nbi(SHMEM_CTX_DEFAULT, dest, source, bytes, signal, value, operation, pe);
}

void shmem_long_atomic_add(long* dest, long value, int pe) {
    shmem_ctx_long_atomic_add(SHMEM_CTX_DEFAULT, dest, value, pe);
}

long shmem_long_atomic_fetch(const long* source, int pe) {
    return shmem_ctx_long_atomic_fetch(SHMEM_CTX_DEFAULT, source, pe);
}

long shmem_long_atomic_fetch_add(long* dest, long value, int pe) {
    return shmem_ctx_long_atomic_fetch_add(SHMEM_CTX_DEFAULT, dest, value, pe);
}

void shmem_long_atomic_fetch_add_nbi(long* fetch, long* dest, long value, int pe) {
    shmem_ctx_long_atomic_fetch_add_nbi(SHMEM_CTX_DEFAULT, fetch, dest, value, pe);
}

long shmem_long_atomic_compare_swap(long* dest, long cond, long value, int pe) {
    return shmem_ctx_long_atomic_compare_swap(SHMEM_CTX_DEFAULT, dest, cond, value, pe);
}

void shmem_long_atomic_set(long* dest, long value, int pe) {
    shmem_ctx_long_atomic_set(SHMEM_CTX_DEFAULT, dest, value, pe);
}

void shmem_long_atomic_fetch_nbi(long* fetch, const long* source, int pe) {
    shmem_ctx_long_atomic_fetch_nbi(SHMEM_CTX_DEFAULT, fetch, source, pe);
}

void shmem_long_atomic_compare_swap_nbi(long* fetch, long* dest, long cond, long value, int pe) {
    shmem_ctx_long_atomic_compare_swap_nbi(SHMEM_CTX_DEFAULT, fetch, dest, cond, value, pe);
}

void shmem_uint64_atomic_xor(uint64_t* dest, uint64_t value, int pe) {
    shmem_ctx_uint64_atomic_xor(SHMEM_CTX_DEFAULT, dest, value, pe);
}

void shmem_fence() {
    shmem_ctx_fence(SHMEM_CTX_DEFAULT);
}

void shmem_quiet() {
    shmem_ctx_quiet(SHMEM_CTX_DEFAULT);
}

void shmem_pe_quiet(const int* pes, size_t count) {
    shmem_ctx_pe_quiet(SHMEM_CTX_DEFAULT, pes, count);
}

// ---- waiting ----

void shmem_long_wait_until(long* word, int comparison, long value) {
    await(word, comparison, true, static_cast<uint64_t>(value));
}

uint64_t shmem_signal_wait_until(uint64_t* signal, int comparison, uint64_t value) {
    await(signal, comparison, false, value);
    return *signal;
}

int shmem_long_test(long* word, int comparison, long value) {
    spend(settings.test.of());
    return compares(static_cast<uint64_t>(*word), comparison, true, static_cast<uint64_t>(value));
}

int shmem_uint64_test(uint64_t* word, int comparison, uint64_t value) {
    spend(settings.test.of());
    return compares(*word, comparison, false, value);
}
