// The session of an OpenSHMEM program: init and finalize, who sends to whom, the team of threads with their
// contexts, and the agreement among PEs.
#pragma once

#include <shmem.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "clock.hpp"
#include "link.hpp"
#include "session.hpp"
#include "thread_team.hpp"

namespace shmem_mt {

static_assert(sizeof(long) == 8, "the programs move long as 8-byte messages");

constexpr int kMaxThreads = 62;

// Words that PEs write into each other to say "sent" and "seen"; a cache line each.
struct Control {
    alignas(64) long flag;
    alignas(64) long ack;
    struct LastWord {
        long offset;  // bytes into the window; -1: nothing to look at
        long value;
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

// Symmetric memory aligned to a page, zeroed. Collective. Fails (ends the program) when the heap is too
// small.
inline void* symmetric_alloc(size_t bytes) {
    void* memory = shmem_align(4096, bytes);
    if (memory == nullptr) {
        fail("shmem_align of " + std::to_string(bytes) + " bytes failed: raise SHMEM_SYMMETRIC_SIZE or ask for " +
             "smaller sizes or fewer threads");
    }
    std::memset(memory, 0, bytes);
    shmem_barrier_all();
    return memory;
}

class Job final : public Session {
  public:
    Job(const char* benchmark, const Options& options) : Session(options) {
        const int wanted = options.threads == 1 ? SHMEM_THREAD_SINGLE : SHMEM_THREAD_MULTIPLE;
        shmem_init_thread(wanted, &provided_);
        team_ = std::make_unique<ThreadTeam>(options.threads);  // after init: the library may move static data then
        me_ = shmem_my_pe();
        n_pes_ = shmem_n_pes();
        thread_level_ok_ = options.threads == 1 || provided_ >= SHMEM_THREAD_MULTIPLE;
        print_library(benchmark, wanted);
        if (n_pes_ < 2 || n_pes_ % 2 != 0)
            fail("the number of PEs must be even, not " + std::to_string(n_pes_));
        reports_ = static_cast<Report*>(symmetric_alloc(sizeof(Report) * static_cast<size_t>(n_pes_)));
        agreed_ = static_cast<Agreed*>(symmetric_alloc(sizeof(Agreed)));
        control_ = static_cast<Control*>(symmetric_alloc(sizeof(Control)));
        prepare();
        create_contexts();
    }

    // Ends the program normally.
    void finish() {
        destroy_contexts();
        team_.reset();
        print_done();
        shmem_barrier_all();
        shmem_finalize();
    }

    ThreadTeam& team() { return *team_; }
    Control* control() { return control_; }
    bool thread_level_ok() const { return thread_level_ok_; }

    // Lower half sends to upper half: PE i to PE i + n/2.
    bool is_sender() const { return me_ < n_pes_ / 2; }
    int partner() const { return is_sender() ? me_ + n_pes_ / 2 : me_ - n_pes_ / 2; }

    // Where messages really go: the partner, unless a fault is planted.
    int message_pe() const {
        if (options_.fault == Fault::kRankAsSize)
            return (me_ + me_ / 2) % n_pes_;
        if (options_.fault == Fault::kPeerListIgnored)
            return (me_ + 1) % n_pes_;
        return partner();
    }

    bool has_private_contexts() const { return private_contexts_; }
    const std::string& why_no_private_contexts() const { return why_no_private_; }

    // Calls f(link) with the link of that kind for `thread`.
    template <class F>
    void with_link(bool private_context, int thread, F&& f) const {
#if SHMEM_MT_HAVE_CTX
        if (private_context)
            return f(PrivateLink{contexts_[static_cast<size_t>(thread)]});
#endif
        (void)private_context;
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

  private:
    void print_library(const char* benchmark, int wanted) const {
        char name[SHMEM_MAX_NAME_LEN + 1] = "";
        int major = 0, minor = 0;
        shmem_info_get_name(name);
        shmem_info_get_version(&major, &minor);
        const char* level = wanted == SHMEM_THREAD_SINGLE ? "SHMEM_THREAD_SINGLE" : "SHMEM_THREAD_MULTIPLE";
        print_start(benchmark, name, major, minor, level, thread_level_ok_);
    }

    void create_contexts() {
#if SHMEM_MT_HAVE_CTX
        if (!thread_level_ok_)
            return;
        contexts_.resize(static_cast<size_t>(threads()));
        std::vector<int> created(static_cast<size_t>(threads()), 0);
        team_->run([&](int thread) {
            const size_t index = static_cast<size_t>(thread);
            created[index] = shmem_ctx_create(SHMEM_CTX_PRIVATE, &contexts_[index]) == 0;
        });
        Report mine;
        for (const int ok : created) mine.ok = mine.ok && ok;
        private_contexts_ = agree(mine).ok != 0;
        why_no_private_ = "shmem_ctx_create(SHMEM_CTX_PRIVATE) failed";
        if (!private_contexts_)
            contexts_.clear();
#endif
    }

    void destroy_contexts() {
#if SHMEM_MT_HAVE_CTX
        if (!private_contexts_)
            return;
        team_->run([&](int thread) { shmem_ctx_destroy(contexts_[static_cast<size_t>(thread)]); });
#endif
    }

    std::unique_ptr<ThreadTeam> team_;
    int provided_ = 0;
    bool thread_level_ok_ = true;
    bool private_contexts_ = false;
    std::string why_no_private_ = "the library has no shmem_ctx_create";
#if SHMEM_MT_HAVE_CTX
    std::vector<shmem_ctx_t> contexts_;
#endif
    Report* reports_ = nullptr;
    Agreed* agreed_ = nullptr;
    Control* control_ = nullptr;
};

}  // namespace shmem_mt
