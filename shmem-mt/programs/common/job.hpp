// The session of an OpenSHMEM program: init and finalize, the partner of each PE, the contexts of the threads, and the
// agreement among PEs.
#pragma once

#include <shmem.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "programs/common/clock.hpp"
#include "programs/common/link.hpp"
#include "programs/common/payload.hpp"
#include "programs/common/session.hpp"

namespace shmem_mt {

static_assert(sizeof(long) == 8, "the programs move long as 8-byte messages");

// Words that PEs write into each other to say "sent" and "seen"; a cache line each.
struct Control {
    alignas(64) long flag;
    alignas(64) long ack;
    alignas(64) long time_ns;  // PE 0's clock, for the PE that asks
    struct LastWord {
        long offset;  // bytes into the window; -1: nothing to look at
        long value;
        long first = -1;  // of the first word of the same message; -1: it is the last
        long first_value = 0;
    };
    alignas(64) LastWord last[kMaxThreads];
};

// The program stops with one line on stderr; the launcher ends the other PEs.
[[noreturn]] inline void fail(const std::string& what) {
    std::fprintf(stderr, "shmem-mt: PE %d: %s\n", shmem_my_pe(), what.c_str());
    std::fflush(stderr);
    shmem_global_exit(1);
    std::abort();
}

// Symmetric memory aligned to a page, with whatever is there. Collective. Fails (ends the program) when the heap is too
// small.
inline void* symmetric_alloc_untouched(size_t bytes) {
    void* memory = shmem_align(4096, bytes);
    if (memory == nullptr) {
        fail("shmem_align of " + std::to_string(bytes) + " bytes failed: raise SHMEM_SYMMETRIC_SIZE or ask for " +
             "smaller sizes or fewer threads");
    }
    return memory;
}

// symmetric_alloc_untouched, zeroed. Collective.
inline void* symmetric_alloc(size_t bytes) {
    void* const memory = symmetric_alloc_untouched(bytes);
    std::memset(memory, 0, bytes);
    shmem_barrier_all();
    return memory;
}

// How many PEs a program can run with: kPairs, an even number, of which half send to the other half; kEven, one without
// pairs.
enum class Pes { kPairs, kPairsOrOne, kEven, kAny };

class Job final : public Session {
  public:
    // level: at least, with one thread; several have SHMEM_THREAD_MULTIPLE, unless --level says otherwise.
    Job(const char* benchmark, const Options& options, Pes pes = Pes::kPairs, int level = SHMEM_THREAD_SINGLE)
        : Session(options) {
        const int wanted = !options.level.empty() ? level_named(options.level)
                           : options.threads == 1 ? level
                                                  : SHMEM_THREAD_MULTIPLE;
        several_call_ = options.threads == 1 || wanted == SHMEM_THREAD_MULTIPLE;
        shmem_init_thread(wanted, &provided_);
        start_threads(options.threads);  // after init: the library may move static data then
        me_ = shmem_my_pe();
        n_pes_ = shmem_n_pes();
        thread_level_ok_ = provided_ >= wanted;
        print_library(benchmark, wanted);
        if (pes != Pes::kAny && n_pes_ % 2 != 0 && !(pes == Pes::kPairsOrOne && n_pes_ == 1))
            fail("the number of PEs must be even, not " + std::to_string(n_pes_));
        reports_ = static_cast<Report*>(symmetric_alloc(sizeof(Report) * static_cast<size_t>(n_pes_)));
        agreed_ = static_cast<Agreed*>(symmetric_alloc(sizeof(Agreed)));
        control_ = static_cast<Control*>(symmetric_alloc(sizeof(Control)));
        asked_ = static_cast<long*>(symmetric_alloc(sizeof(long) * static_cast<size_t>(n_pes_)));
        gathered_ = static_cast<char*>(shmem_align(64, kMostGathered * static_cast<size_t>(n_pes_)));
        if (gathered_ == nullptr)
            fail("the symmetric heap is too small: raise SHMEM_SYMMETRIC_SIZE");
        has_pairs_ = pes == Pes::kPairs || pes == Pes::kPairsOrOne;
        prepare();
        create_contexts();
        if (lacks_partners(benchmark)) {
            finish();
            std::exit(0);
        }
    }

    // Ends the program normally.
    void finish() {
        destroy_contexts();
        end_threads();
        print_done();
        shmem_barrier_all();
        shmem_finalize();
    }

    Control* control() { return control_; }

    // Empty, or the reason why there is no such context.
    std::string why_no_context(Route route) const {
        if (route == Route::kDefaultContext)
            return "";
        return route == Route::kSharedContext ? why_no_shared_ : why_no_private_;
    }

    // A context for each thread; the default one where there are none.
    Route own_route() const {
        return why_no_context(Route::kPrivateContext).empty() ? Route::kPrivateContext : Route::kDefaultContext;
    }

    // Calls f(link) with the link to that context for `thread`.
    template <class F>
    void with_link(Route route, int thread, F&& f) const {
#if SHMEM_MT_HAVE_CTX
        if (route == Route::kPrivateContext)
            return f(ContextLink{contexts_[static_cast<size_t>(thread)]});
        if (route == Route::kSharedContext)
            return f(ContextLink{shared_context_});
#endif
        (void)route;
        (void)thread;
        f(DefaultLink{});
    }

    void barrier() override { shmem_barrier_all(); }

    // Two barriers.
    Agreed agree(const Report& mine) override {
        shmem_putmem(reports_ + me_, &mine, sizeof mine, 0);
        shmem_barrier_all();
        if (me_ == 0) {
            const Agreed result = reduce(reports_);
            for (int pe = 0; pe < n_pes_; ++pe) shmem_putmem(agreed_, &result, sizeof result, pe);
        }
        shmem_barrier_all();
        return *agreed_;
    }

    // Two barriers.
    void gather(const void* mine, size_t bytes, void* all) override {
        shmem_putmem(gathered_ + static_cast<size_t>(me_) * bytes, mine, bytes, 0);
        shmem_barrier_all();
        if (me_ == 0)
            std::memcpy(all, gathered_, bytes * static_cast<size_t>(n_pes_));
        shmem_barrier_all();
    }

    // Two barriers.
    void scatter(const void* all, size_t bytes, void* mine) override {
        for (int pe = 0; me_ == 0 && pe < n_pes_; ++pe)
            shmem_putmem(gathered_, static_cast<const char*>(all) + static_cast<size_t>(pe) * bytes, bytes, pe);
        shmem_barrier_all();
        std::memcpy(mine, gathered_, bytes);
        shmem_barrier_all();
    }

  protected:
    long ask_time(long number) override {
        control_->time_ns = 0;
        shmem_long_p(asked_ + me_, number, 0);
        shmem_long_wait_until(&control_->time_ns, SHMEM_CMP_NE, 0);
        return __atomic_load_n(&control_->time_ns, __ATOMIC_ACQUIRE);
    }

    void answer_time(int pe, long number) override {
        shmem_long_wait_until(asked_ + pe, SHMEM_CMP_EQ, number);
        shmem_long_p(&control_->time_ns, time_ns(), pe);
        shmem_quiet();
    }

  private:
    void print_library(const char* benchmark, int wanted) const {
        char name[SHMEM_MAX_NAME_LEN + 1] = "";
        int major = 0, minor = 0;
        shmem_info_get_name(name);
        shmem_info_get_version(&major, &minor);
        const std::string level = wanted == SHMEM_THREAD_SINGLE       ? "SINGLE"
                                  : wanted == SHMEM_THREAD_FUNNELED   ? "FUNNELED"
                                  : wanted == SHMEM_THREAD_SERIALIZED ? "SERIALIZED"
                                                                      : "MULTIPLE";
        print_start(benchmark, name, major, minor, ("SHMEM_THREAD_" + level).c_str());
    }

    void create_contexts() {
#if SHMEM_MT_HAVE_CTX
        if (!thread_level_ok_)
            return;
        if (!several_call_) {
            why_no_private_ = why_no_shared_ = "under its thread level one thread at a time calls the library";
            return;
        }
        contexts_.resize(static_cast<size_t>(threads()));
        std::vector<int> created(static_cast<size_t>(threads()), 0);
        team().run([&](int thread) {
            const size_t index = static_cast<size_t>(thread);
            created[index] = shmem_ctx_create(SHMEM_CTX_PRIVATE, &contexts_[index]) == 0;
        });
        Report mine;
        for (const int ok : created) mine.ok = mine.ok && ok;
        why_no_private_ = agree(mine).ok ? "" : "shmem_ctx_create(SHMEM_CTX_PRIVATE) failed";
        mine.ok = shmem_ctx_create(0, &shared_context_) == 0;
        why_no_shared_ = agree(mine).ok ? "" : "shmem_ctx_create(0) failed";
#endif
    }

    void destroy_contexts() {
#if SHMEM_MT_HAVE_CTX
        if (why_no_shared_.empty())
            shmem_ctx_destroy(shared_context_);
        if (why_no_private_.empty())
            team().run([&](int thread) { shmem_ctx_destroy(contexts_[static_cast<size_t>(thread)]); });
#endif
    }

    static int level_named(const std::string& name) {
        return name == "single"       ? SHMEM_THREAD_SINGLE
               : name == "funneled"   ? SHMEM_THREAD_FUNNELED
               : name == "serialized" ? SHMEM_THREAD_SERIALIZED
                                      : SHMEM_THREAD_MULTIPLE;
    }

    int provided_ = 0;
    bool several_call_ = true;  // threads may, at once
    std::string why_no_private_ = "the library has no shmem_ctx_create";
    std::string why_no_shared_ = why_no_private_;
#if SHMEM_MT_HAVE_CTX
    shmem_ctx_t shared_context_{};
    std::vector<shmem_ctx_t> contexts_;
#endif
    Report* reports_ = nullptr;
    Agreed* agreed_ = nullptr;
    Control* control_ = nullptr;
    long* asked_ = nullptr;  // at PE 0 a word for each PE: the last number that it asked with
    char* gathered_ = nullptr;
};

// Whether the symmetric heaps have room for a window of so many bytes of a thread, and the machine for that and a private
// buffer of each PE besides, in half of its memory. Collective.
inline bool fits_memory(Job& job, long bytes) {
    const long window = bytes * job.threads();
    Report mine;
    mine.ok = job.most_of_a_host(2.0 * static_cast<double>(window)) <= 0.5 * static_cast<double>(available_bytes());
    if (!job.agree(mine).ok)
        return false;
    void* const memory = shmem_align(4096, static_cast<size_t>(window));
    mine.ok = memory != nullptr;
    const bool fits = job.agree(mine).ok;
    if (fits)
        shmem_free(memory);
    return fits;
}

}  // namespace shmem_mt
