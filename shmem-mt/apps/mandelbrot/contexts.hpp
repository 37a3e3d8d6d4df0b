// Several private contexts for each thread; the thread uses them in turns.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "programs/common/job.hpp"

namespace shmem_mt {

class ContextTurns {
  public:
    // Pieces of which one is computed while the others travel. What computing takes and what sending takes differ from
    // piece to piece, and even out over four.
    static constexpr size_t kTurns = 4;

    // Collective.
    explicit ContextTurns(Job& job) : job_(job), why_none_(job.why_no_context(Route::kPrivateContext)) {
#if SHMEM_MT_HAVE_CTX
        if (!why_none_.empty())
            return;
        owns_.resize(static_cast<size_t>(job.threads()));
        job.team().run([&](int thread) {
            Own& own = owns_[static_cast<size_t>(thread)];
            for (shmem_ctx_t& context : own.contexts) {
                if (shmem_ctx_create(SHMEM_CTX_PRIVATE, &context) != 0)
                    break;
                ++own.created;
            }
        });
        Report mine;
        for (const Own& own : owns_) mine.ok = mine.ok && own.created == kTurns;
        if (!job.agree(mine).ok)
            why_none_ = "shmem_ctx_create(SHMEM_CTX_PRIVATE) failed for several contexts a thread";
#endif
    }

    ~ContextTurns() {
#if SHMEM_MT_HAVE_CTX
        if (owns_.empty())
            return;
        job_.team().run([&](int thread) {
            Own& own = owns_[static_cast<size_t>(thread)];
            while (own.created > 0) shmem_ctx_destroy(own.contexts[--own.created]);
        });
#endif
    }

    ContextTurns(const ContextTurns&) = delete;
    ContextTurns& operator=(const ContextTurns&) = delete;

    // Empty, or why there are none.
    const std::string& why_none() const { return why_none_; }

    // Calls f(links) with those of this thread, an array of kTurns.
    template <class F>
    void with_links(int thread, F&& f) const {
#if SHMEM_MT_HAVE_CTX
        std::array<ContextLink, kTurns> links{};
        for (size_t turn = 0; turn < kTurns; ++turn) links[turn] = {owns_[static_cast<size_t>(thread)].contexts[turn]};
        f(links);
#else
        (void)thread;
        f(std::array<DefaultLink, kTurns>{});
#endif
    }

  private:
    Job& job_;
    std::string why_none_;
#if SHMEM_MT_HAVE_CTX
    struct Own {
        shmem_ctx_t contexts[kTurns];
        size_t created = 0;
    };
    std::vector<Own> owns_;
#endif
};

}  // namespace shmem_mt
