// The contexts of the patterns beside those that every program has: one that is SERIALIZED and behind a lock of the
// program, and pools of some contexts for all threads. By the links through them the loops of a pattern are written once.
#pragma once

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "programs/common/job.hpp"
#include "programs/patterns/ways.hpp"

namespace shmem_mt {

// A lock of a program. It yields, because cores may be fewer than threads.
class Lock {
  public:
    void lock() {
        for (int spins = 0; taken_.exchange(true, std::memory_order_acquire); ++spins) {  // pairs with Lock::unlock
            if (spins > 50)
                sched_yield();
        }
    }
    void unlock() { taken_.store(false, std::memory_order_release); }  // pairs with Lock::lock

  private:
    alignas(64) std::atomic<bool> taken_{false};
};

// The members of another link, one call at a time.
template <class Base>
struct LockedLink {
    Base base;
    Lock* lock;

    void p(long* dest, long value, int pe) const {
        alone([&] { base.p(dest, value, pe); });
    }
    void put(void* dest, const void* source, size_t bytes, int pe) const {
        alone([&] { base.put(dest, source, bytes, pe); });
    }
    void get(void* dest, const void* source, size_t bytes, int pe) const {
        alone([&] { base.get(dest, source, bytes, pe); });
    }
    void put_nbi(void* dest, const void* source, size_t bytes, int pe) const {
        alone([&] { base.put_nbi(dest, source, bytes, pe); });
    }
    void fence() const {
        alone([&] { base.fence(); });
    }
    void quiet() const {
        alone([&] { base.quiet(); });
    }
#if SHMEM_MT_HAVE_PE_QUIET
    void pe_quiet(const int* pes, size_t count) const {
        alone([&] { base.pe_quiet(pes, count); });
    }
#endif
#if SHMEM_MT_HAVE_PUT_SIGNAL
    void put_signal(void* dest, const void* source, size_t bytes, uint64_t* signal, uint64_t value, int pe) const {
        alone([&] { base.put_signal(dest, source, bytes, signal, value, pe); });
    }
#endif

  private:
    template <class F>
    void alone(F&& f) const {
        lock->lock();
        f();
        lock->unlock();
    }
};

// Whether operations through that link can be under a request: what the library completes takes no lock of the program.
template <class Link>
inline constexpr bool kCanRequest = true;
template <class Base>
inline constexpr bool kCanRequest<LockedLink<Base>> = false;

class PatternContexts {
  public:
    // Collective. Makes what `wanted` names.
    PatternContexts(Job& job, const std::vector<Context>& wanted, bool one_at_a_time)
        : job_(job), locks_all_(one_at_a_time && job.threads() > 1) {
#if SHMEM_MT_HAVE_CTX
        for (const Context& context : wanted) {
            const bool is_own = context.kind == ContextKind::kSerialized || context.kind == ContextKind::kPool;
            if (!is_own || (locks_all_ && context.kind == ContextKind::kPool))
                continue;
            const bool serialized = context.kind == ContextKind::kSerialized;
            std::vector<shmem_ctx_t>& made = made_[context.name];
            Report mine;
            for (int i = 0; i < std::max(1, context.pool); ++i) {
                made.emplace_back();
                mine.ok = mine.ok && shmem_ctx_create(serialized ? SHMEM_CTX_SERIALIZED : 0, &made.back()) == 0;
            }
            if (!job.agree(mine).ok)
                lacking_.push_back(context.name);
        }
#endif
    }

    ~PatternContexts() {
#if SHMEM_MT_HAVE_CTX
        for (const auto& [name, contexts] : made_) {
            const bool is_there = std::find(lacking_.begin(), lacking_.end(), name) == lacking_.end();
            for (const shmem_ctx_t ctx : is_there ? contexts : std::vector<shmem_ctx_t>{}) shmem_ctx_destroy(ctx);
        }
#endif
    }

    PatternContexts(const PatternContexts&) = delete;
    PatternContexts& operator=(const PatternContexts&) = delete;

    // Empty, or the reason why there is no such context.
    std::string why_not(const Context& context) const {
        if (context.kind == ContextKind::kShared)
            return job_.why_no_context(Route::kSharedContext);
        if (context.kind == ContextKind::kPrivate)
            return job_.why_no_context(Route::kPrivateContext);
        if (context.kind != ContextKind::kDefault && !SHMEM_MT_HAVE_CTX)
            return "the library has no shmem_ctx_create";
        const bool failed = std::find(lacking_.begin(), lacking_.end(), context.name) != lacking_.end();
        return failed ? "shmem_ctx_create failed" : "";
    }

    // Calls f(link) with the link that `thread` sends through.
    template <class F>
    void with(const Context& context, int thread, F&& f) {
#if SHMEM_MT_HAVE_CTX
        if (context.kind == ContextKind::kSerialized)
            return f(LockedLink<ContextLink>{{made_.at(context.name)[0]}, &lock_});
        if (context.kind == ContextKind::kPool)
            return f(ContextLink{made_.at(context.name)[static_cast<size_t>(thread % context.pool)]});
#endif
        if (locks_all_)
            return f(LockedLink<DefaultLink>{{}, &lock_});
        job_.with_link(route_of(context), thread, f);
    }

    // Calls f(link) with the link to each context that threads share. Not of private ones.
    template <class F>
    void with_all(const Context& context, F&& f) {
        for (int i = 0; i < std::max(1, context.pool); ++i) with(context, i, f);
    }

  private:
    static Route route_of(const Context& context) {
        return context.kind == ContextKind::kPrivate  ? Route::kPrivateContext
               : context.kind == ContextKind::kShared ? Route::kSharedContext
                                                      : Route::kDefaultContext;
    }

    Job& job_;
    const bool locks_all_;  // one thread at a time may call the library
    Lock lock_;
#if SHMEM_MT_HAVE_CTX
    std::map<std::string, std::vector<shmem_ctx_t>> made_;
#endif
    std::vector<std::string> lacking_;
};

}  // namespace shmem_mt
