// The contexts of the ordering study: one a thread without order and one with it where the library has them (shmemx.h);
// elsewhere the thread's own context of OpenSHMEM 1.4, or the default one, which promise no order either.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "programs/common/job.hpp"
#include "programs/common/shmemx.hpp"
#include "programs/ordering/rules.hpp"

namespace shmem_mt {

class RuleContexts {
  public:
    // Collective.
    explicit RuleContexts(Job& job) : job_(job) {
#if SHMEM_MT_HAVE_SHMEMX
        relaxed_.resize(static_cast<size_t>(job.threads()));
        ordered_.resize(relaxed_.size());
        long* const word = static_cast<long*>(symmetric_alloc(sizeof(long) * static_cast<size_t>(job.threads())));
        std::vector<int> made(relaxed_.size(), 0);
        job.team().run([&](int thread) {
            const size_t i = static_cast<size_t>(thread);
            made[i] = shmem_ctx_create(SHMEMX_CTX_RELAXED | SHMEM_CTX_PRIVATE, &relaxed_[i]) == 0 &&
                      shmem_ctx_create(SHMEMX_CTX_ORDERED | SHMEM_CTX_PRIVATE, &ordered_[i]) == 0;
            if (!made[i])
                return;
            for (const shmem_ctx_t ctx : {relaxed_[i], ordered_[i]}) {  // whose way to the network is there then
                shmem_ctx_long_p(ctx, word + i, 1, job.partner());
                shmem_ctx_quiet(ctx);
            }
        });
        if (std::count(made.begin(), made.end(), 1) != job.threads())
            fail("shmem_ctx_create for a context with or without order failed");
        shmemx_ctx_info_t info;
        shmemx_ctx_info(relaxed_[0], &info);
        rails_ = std::max(1, info.rails);
#endif
    }

    ~RuleContexts() {
#if SHMEM_MT_HAVE_SHMEMX
        job_.team().run([&](int thread) {
            shmem_ctx_destroy(relaxed_[static_cast<size_t>(thread)]);
            shmem_ctx_destroy(ordered_[static_cast<size_t>(thread)]);
        });
#endif
    }

    RuleContexts(const RuleContexts&) = delete;
    RuleContexts& operator=(const RuleContexts&) = delete;

    int rails() const { return rails_; }

    // Empty, or why the rule cannot be measured.
    std::string why_not(Rule rule) const {
        if (rule != Rule::kOrdered && rule != Rule::kReorderBuffer)
            return "";
#if !SHMEM_MT_HAVE_SHMEMX
        return "the library has no contexts that keep order (shmemx.h)";
#elif !defined(SHMEMX_ORDER_RAIL)
        return rule == Rule::kOrdered ? "" : "the library does not say how its contexts keep order";
#else
        shmemx_ctx_info_t info;
        shmemx_ctx_info(ordered_[0], &info);
        if (rule == Rule::kOrdered)
            return info.order != SHMEMX_ORDER_REORDER ? "" : "ordered contexts keep order by a buffer at the target";
        return info.order == SHMEMX_ORDER_REORDER ? "" : "ordered contexts do not keep order by a buffer at the target";
#endif
    }

    // Empty, or why nothing can be measured: the library does not use the rails that it was told to use.
    std::string why_not_these_rails() const {
        const char* asked = std::getenv("HEDDLE_NET_RAILS");
        if (asked == nullptr || rails_ == std::atoi(asked))
            return "";
        return "its contexts have " + std::to_string(rails_);
    }

    static bool keeps_order(Rule rule) { return rule == Rule::kOrdered || rule == Rule::kReorderBuffer; }

    std::string name(Rule rule) const {
#if SHMEM_MT_HAVE_SHMEMX
        return keeps_order(rule) ? "ordered" : "relaxed";
#else
        (void)rule;
        return job_.why_no_context(Route::kPrivateContext).empty() ? "private" : "default";
#endif
    }

    // Calls f(link) with the link to the context of `thread` that keeps order, or does not.
    template <class F>
    void with_link(bool ordered, int thread, F&& f) const {
#if SHMEM_MT_HAVE_SHMEMX
        f(ContextLink{(ordered ? ordered_ : relaxed_)[static_cast<size_t>(thread)]});
#else
        (void)ordered;
        const bool own = job_.why_no_context(Route::kPrivateContext).empty();
        job_.with_link(own ? Route::kPrivateContext : Route::kDefaultContext, thread, f);
#endif
    }

    // Whether the link is to a context that keeps order just where the rule needs one.
    template <class Link>
    static bool suits(const Link& link, Rule rule) {
#if SHMEM_MT_HAVE_SHMEMX
        shmemx_ctx_info_t info;
        const long wanted = keeps_order(rule) ? SHMEMX_CTX_ORDERED : SHMEMX_CTX_RELAXED;
        return shmemx_ctx_info(link.ctx, &info) == 0 && (info.given & wanted);
#else
        (void)link;
        return !keeps_order(rule);
#endif
    }

  private:
    Job& job_;
    int rails_ = 1;
#if SHMEM_MT_HAVE_SHMEMX
    std::vector<shmem_ctx_t> relaxed_, ordered_;  // by thread
#endif
};

}  // namespace shmem_mt
