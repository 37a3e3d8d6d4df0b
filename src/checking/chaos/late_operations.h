// Operations that their origin has issued and not delivered. The order in which they leave is drawn. A fence divides
// those of a context and target into epochs. No operation leaves before those of earlier epochs.
//
// Threads: one at a time.
#pragma once

#include "checking/chaos/random.h"
#include "context/request.h"
#include "operations/observer.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace heddle::checking {

struct LateOperation {
    operations::Operation operation;
    std::shared_ptr<const char[]> data;   // the copy of what a blocking put sends; null: the program's buffer
    context::Request* request = nullptr;  // counts the operation on `side`; null: none
    uint32_t side = 0;
    uint64_t epoch = 0;   // of its context and target, when it was issued
    uint64_t due_ns = 0;  // when it is delivered though nothing asks for it (os::now_ns)
    size_t bytes = 0;     // of data that only this one holds
    bool fenced = false;  // once taken: a fence has been called behind it
};

// Which operations a call concerns.
struct Selection {
    shmem_ctx_t ctx = nullptr;  // null: of all contexts
    const int* pes = nullptr;   // of the context; null: all
    size_t npes = 0;
    uint64_t due_ns = UINT64_MAX;  // those that are due then, or earlier
};

class LateOperations {
  public:
    bool empty() const { return n_ == 0; }
    size_t size() const { return n_; }
    size_t bytes() const { return bytes_; }

    void add(LateOperation&& late);
    // Begins an epoch for each target of ctx.
    void fence(shmem_ctx_t ctx);
    // The epoch of operations that are issued now.
    uint64_t epoch_of(shmem_ctx_t ctx) const;
    // True when operations of earlier epochs than that of `operation` are here, for its context and target.
    bool has_earlier(const operations::Operation& operation) const;
    // Takes one of the selected operations that may leave; false when none is here.
    bool take(Random& random, const Selection& selection, LateOperation* late);
    // Takes one that must leave before `operation`; false when none must.
    bool take_earlier(Random& random, const operations::Operation& operation, LateOperation* late);
    bool has(const Selection& selection) const;

  private:
    // The operations on one context to one PE, in the order of their epochs. The first `ready` ones are of the earliest
    // epoch: any of them may leave.
    struct Target {
        shmem_ctx_t ctx;
        int pe;  // of the context
        size_t ready = 0;
        std::vector<LateOperation> operations;
    };
    struct Epoch {
        shmem_ctx_t ctx;
        uint64_t number;
    };

    static bool selects(const Selection& selection, const Target& target);
    Target* find(shmem_ctx_t ctx, int pe);
    const Target* find(shmem_ctx_t ctx, int pe) const;
    void remove(Target& target, size_t i, LateOperation* late);

    std::vector<Target> targets_;  // those with operations
    std::vector<Epoch> epochs_;    // of contexts with a fence since they had no operation
    size_t n_ = 0, bytes_ = 0;
};

}  // namespace heddle::checking
