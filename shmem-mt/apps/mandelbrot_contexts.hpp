// Two private contexts for each thread, which it uses in turns.
#pragma once

#include <string>
#include <vector>

#include "job.hpp"

namespace shmem_mt {

class ContextPairs {
  public:
    // Collective.
    explicit ContextPairs(Job& job) : job_(job), why_none_(job.why_no_context(Route::kPrivateContext)) {
#if SHMEM_MT_HAVE_CTX
        if (!why_none_.empty())
            return;
        pairs_.resize(static_cast<size_t>(job.threads()));
        job.team().run([&](int thread) {
            Pair& pair = pairs_[static_cast<size_t>(thread)];
            for (shmem_ctx_t& context : pair.contexts) {
                if (shmem_ctx_create(SHMEM_CTX_PRIVATE, &context) != 0)
                    break;
                ++pair.created;
            }
        });
        Report mine;
        for (const Pair& pair : pairs_) mine.ok = mine.ok && pair.created == 2;
        if (!job.agree(mine).ok)
            why_none_ = "shmem_ctx_create(SHMEM_CTX_PRIVATE) failed for two contexts a thread";
#endif
    }

    ~ContextPairs() {
#if SHMEM_MT_HAVE_CTX
        if (pairs_.empty())
            return;
        job_.team().run([&](int thread) {
            Pair& pair = pairs_[static_cast<size_t>(thread)];
            while (pair.created > 0) shmem_ctx_destroy(pair.contexts[--pair.created]);
        });
#endif
    }

    ContextPairs(const ContextPairs&) = delete;
    ContextPairs& operator=(const ContextPairs&) = delete;

    // Empty, or why there are none.
    const std::string& why_none() const { return why_none_; }

    // Calls f(link, link) with those of this thread.
    template <class F>
    void with_links(int thread, F&& f) const {
#if SHMEM_MT_HAVE_CTX
        const Pair& pair = pairs_[static_cast<size_t>(thread)];
        f(ContextLink{pair.contexts[0]}, ContextLink{pair.contexts[1]});
#else
        (void)thread;
        f(DefaultLink{}, DefaultLink{});
#endif
    }

  private:
    Job& job_;
    std::string why_none_;
#if SHMEM_MT_HAVE_CTX
    struct Pair {
        shmem_ctx_t contexts[2];
        int created = 0;
    };
    std::vector<Pair> pairs_;
#endif
};

}  // namespace shmem_mt
