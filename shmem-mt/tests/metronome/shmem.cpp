// OpenSHMEM over the job's virtual time (world.hpp): each call takes what the settings say, and no more.
#include "shmem.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#include "world.hpp"

using namespace metronome;

struct metronome_context {
    Picoseconds complete;  // when all that it has sent is at its target
};

namespace {

metronome_context default_context;
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
long update(const Cost& cost, long* dest, int pe, F&& change) {
    spend_moving(cost, 8);
    long value;
    char* const word = at(dest, pe);
    std::memcpy(&value, word, 8);
    const long changed = change(value);
    std::memcpy(word, &changed, 8);
    notify(pe);
    return value;
}

void complete(shmem_ctx_t ctx) {
    reach(ctx->complete);
}

// ---- collectives ----

// Element `index` of what a member brings.
template <class T>
T element(const Team& team, int rank, size_t index) {
    T value;
    const int pe = team.first + rank * team.stride;
    std::memcpy(&value, memory_of(pe) + team.members[rank].source + index * sizeof(T), sizeof(T));
    return value;
}

// Each member's dest becomes what make(rank, old) makes of its `nelems` elements.
template <class T, class Make>
int collective(shmem_team_t id, T* dest, const T* source, size_t nelems, size_t dest_nelems, Make&& make) {
    Team& team = world->teams[id];
    meet(team, settings.collective.of(sizeof(T) * nelems), kCollectiveKind, source, dest, [&](Picoseconds time) {
        std::vector<std::vector<T>> all;
        for (int rank = 0; rank < team.size; ++rank) {
            const auto* const old =
                reinterpret_cast<const T*>(memory_of(team.first + rank * team.stride) + team.members[rank].dest);
            all.emplace_back(old, old + dest_nelems);
            make(rank, all.back());
        }
        for (int rank = 0; rank < team.size; ++rank) {
            char* const here = memory_of(me) + team.members[rank].dest;
            send(team.first + rank * team.stride, here, all[static_cast<size_t>(rank)].data(), sizeof(T) * dest_nelems,
                 time);
        }
    });
    return 0;
}

template <class T>
int concatenate(shmem_team_t id, T* dest, const T* source, size_t nelems) {
    const Team& team = world->teams[id];
    const size_t all = nelems * static_cast<size_t>(team.size);
    return collective(id, dest, source, nelems, all, [&](int, std::vector<T>& result) {
        for (size_t i = 0; i < all; ++i) result[i] = element<T>(team, static_cast<int>(i / nelems), i % nelems);
    });
}

// Of the members up to `last(rank)`.
template <class T, class Combine, class Last>
int reduce(shmem_team_t id, T* dest, const T* source, size_t nelems, Combine&& combine, Last&& last) {
    const Team& team = world->teams[id];
    return collective(id, dest, source, nelems, nelems, [&](int rank, std::vector<T>& result) {
        for (size_t i = 0; i < nelems; ++i) {
            result[i] = element<T>(team, 0, i);
            for (int other = 1; other <= last(rank); ++other)
                result[i] = combine(result[i], element<T>(team, other, i));
        }
    });
}

template <class T>
T sum(T a, T b) {
    return a + b;
}

}  // namespace

shmem_ctx_t SHMEM_CTX_DEFAULT = &default_context;

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

int shmem_ctx_create(long, shmem_ctx_t* ctx) {
    *ctx = new metronome_context{0};
    return 0;
}

void shmem_ctx_destroy(shmem_ctx_t ctx) {
    complete(ctx);
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
    spend_moving(settings.put, bytes);
    send_by(ctx, dest, source, bytes, pe);
}

void shmem_ctx_putmem_nbi(shmem_ctx_t ctx, void* dest, const void* source, size_t bytes, int pe) {
    spend_moving(settings.put_nbi, bytes);
    send_by(ctx, dest, source, bytes, pe);
}

void shmem_ctx_getmem(shmem_ctx_t, void* dest, const void* source, size_t bytes, int pe) {
    spend_moving(settings.get, bytes);
    bring(dest, at(source, pe), bytes);
}

void shmem_ctx_getmem_nbi(shmem_ctx_t ctx, void* dest, const void* source, size_t bytes, int pe) {
    spend_moving(settings.get_nbi, bytes);
    const char* const from = at(source, pe);
    do_in_flight(ctx, [=] { bring(dest, from, bytes); });
}

void shmem_ctx_putmem_signal(shmem_ctx_t ctx, void* dest, const void* source, size_t bytes, uint64_t* signal,
                             uint64_t value, int, int pe) {
    spend_moving(settings.put, bytes);
    spend(settings.signal.of());
    send_by(ctx, dest, source, bytes, pe);
    send_by(ctx, signal, &value, 8, pe);
}

void shmem_ctx_putmem_signal_nbi(shmem_ctx_t ctx, void* dest, const void* source, size_t bytes, uint64_t* signal,
                                 uint64_t value, int, int pe) {
    spend_moving(settings.put_nbi, bytes);
    spend(settings.signal.of());
    send_by(ctx, dest, source, bytes, pe);
    send_by(ctx, signal, &value, 8, pe);
}

void shmem_ctx_long_atomic_add(shmem_ctx_t ctx, long* dest, long value, int pe) {
    spend_moving(settings.atomic, 8);
    send_by(ctx, dest, &value, 8, pe, true);
}

long shmem_ctx_long_atomic_fetch(shmem_ctx_t, const long* source, int pe) {
    return update(settings.fetch, const_cast<long*>(source), pe, [](long old) { return old; });
}

long shmem_ctx_long_atomic_fetch_add(shmem_ctx_t, long* dest, long value, int pe) {
    return update(settings.fetch, dest, pe, [=](long old) { return old + value; });
}

void shmem_ctx_long_atomic_fetch_add_nbi(shmem_ctx_t ctx, long* fetch, long* dest, long value, int pe) {
    spend_moving(settings.get_nbi, 8);
    char* const word = at(dest, pe);
    do_in_flight(ctx, [=] {
        long old;
        std::memcpy(&old, word, 8);
        const long changed = old + value;
        std::memcpy(word, &changed, 8);
        notify(pe);
        *fetch = old;
    });
}

long shmem_ctx_long_atomic_compare_swap(shmem_ctx_t, long* dest, long cond, long value, int pe) {
    return update(settings.fetch, dest, pe, [=](long old) { return old == cond ? value : old; });
}

void shmem_ctx_uint64_atomic_xor(shmem_ctx_t, uint64_t* dest, uint64_t value, int pe) {
    update(settings.fetch, reinterpret_cast<long*>(dest), pe, [=](long old) { return old ^ static_cast<long>(value); });
}

void shmem_ctx_fence(shmem_ctx_t) {
    spend(settings.fence.of());
}

void shmem_ctx_quiet(shmem_ctx_t ctx) {
    complete(ctx);
    spend(settings.quiet.of());
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

void shmem_uint64_atomic_xor(uint64_t* dest, uint64_t value, int pe) {
    shmem_ctx_uint64_atomic_xor(SHMEM_CTX_DEFAULT, dest, value, pe);
}

void shmem_fence() {
    shmem_ctx_fence(SHMEM_CTX_DEFAULT);
}

void shmem_quiet() {
    shmem_ctx_quiet(SHMEM_CTX_DEFAULT);
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

// ---- collectives ----

void shmem_barrier_all() {
    complete(SHMEM_CTX_DEFAULT);
    meet(world->teams[0], settings.barrier.of(), kBarrierKind);
}

void shmem_sync_all() {
    meet(world->teams[0], settings.sync.of(), kSyncKind);
}

int shmem_team_sync(shmem_team_t team) {
    meet(world->teams[team], settings.sync.of(), kSyncKind);
    return 0;
}

int shmem_team_split_strided(shmem_team_t parent, int start, int stride, int size, const shmem_team_config_t*, long,
                             shmem_team_t* team) {
    meet(world->teams[parent], settings.barrier.of(), -1, nullptr, nullptr, [&](Picoseconds) {
        if (world->n_teams == kMostTeams)
            fatal("it has no room for so many teams");
        Team& made = world->teams[world->n_teams++];
        made.first = start;
        made.stride = stride;
        made.size = size;
        for (Member& member : made.members) member.task = -1;
    });
    const bool is_member = me >= start && (me - start) % stride == 0 && (me - start) / stride < size;
    *team = is_member ? world->n_teams - 1 : SHMEM_TEAM_INVALID;
    return 0;
}

void shmem_team_destroy(shmem_team_t) {}

int shmem_long_broadcast(shmem_team_t id, long* dest, const long* source, size_t nelems, int root) {
    const Team& team = world->teams[id];
    return collective(id, dest, source, nelems, nelems, [&](int, std::vector<long>& result) {
        for (size_t i = 0; i < nelems; ++i) result[i] = element<long>(team, root, i);
    });
}

int shmem_long_collect(shmem_team_t id, long* dest, const long* source, size_t nelems) {
    return concatenate(id, dest, source, nelems);
}

int shmem_long_fcollect(shmem_team_t id, long* dest, const long* source, size_t nelems) {
    return concatenate(id, dest, source, nelems);
}

int shmem_double_fcollect(shmem_team_t id, double* dest, const double* source, size_t nelems) {
    return concatenate(id, dest, source, nelems);
}

int shmem_long_alltoall(shmem_team_t id, long* dest, const long* source, size_t nelems) {
    return shmem_long_alltoalls(id, dest, source, 1, 1, nelems);
}

int shmem_long_alltoalls(shmem_team_t id, long* dest, const long* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems) {
    const Team& team = world->teams[id];
    const size_t all = nelems * static_cast<size_t>(team.size);
    const auto to_stride = static_cast<size_t>(dst), from_stride = static_cast<size_t>(sst);
    const size_t span = (all - 1) * to_stride + 1;
    return collective(id, dest, source, nelems, span, [&](int rank, std::vector<long>& result) {
        const size_t block = nelems * static_cast<size_t>(rank);
        for (size_t i = 0; i < all; ++i) {
            result[i * to_stride] =
                element<long>(team, static_cast<int>(i / nelems), (block + i % nelems) * from_stride);
        }
    });
}

int shmem_double_sum_reduce(shmem_team_t id, double* dest, const double* source, size_t nelems) {
    const int last = world->teams[id].size - 1;
    return reduce(id, dest, source, nelems, sum<double>, [=](int) { return last; });
}

int shmem_long_sum_reduce(shmem_team_t id, long* dest, const long* source, size_t nelems) {
    const int last = world->teams[id].size - 1;
    return reduce(id, dest, source, nelems, sum<long>, [=](int) { return last; });
}

int shmem_long_max_reduce(shmem_team_t id, long* dest, const long* source, size_t nelems) {
    const int last = world->teams[id].size - 1;
    return reduce(id, dest, source, nelems, [](long a, long b) { return std::max(a, b); }, [=](int) { return last; });
}

int shmem_double_sum_inscan(shmem_team_t id, double* dest, const double* source, size_t nelems) {
    return reduce(id, dest, source, nelems, sum<double>, [](int rank) { return rank; });
}
