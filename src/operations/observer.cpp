#include "operations/observer.h"

#include "operations/amo.h"
#include "operations/rma.h"
#include "operations/signal.h"

namespace heddle::operations {

HEDDLE_PE_LOCAL base::PePointer<Observer> observer;

constinit heddle_watched watched_accesses = {};
constinit bool program_tells_accesses = false;

constinit thread_local const void* called_from = nullptr;
constinit thread_local ObservedRuns* observed_runs = nullptr;
constinit thread_local int Unobserved::depth_ = 0;

void carry_out(const Operation& operation) {
    const Unobserved mark;
    const char* const function = operation.call.function;
    auto* const dest = static_cast<char*>(operation.dest);
    const auto* const source = static_cast<const char*>(operation.source);
    switch (operation.kind) {
        case Operation::Kind::kPut:
            for (size_t i = 0; i < operation.nblocks; ++i)
                slow_put(function, operation.ctx, dest + i * operation.dest_step, source + i * operation.source_step,
                         operation.nelems, operation.element_bytes, operation.pe);
            return;
        case Operation::Kind::kGet:
            for (size_t i = 0; i < operation.nblocks; ++i)  // the last one waits for all, as in get_blocks_far
                slow_get(function, operation.ctx, dest + i * operation.dest_step, source + i * operation.source_step,
                         operation.nelems, operation.element_bytes, operation.pe, i + 1 == operation.nblocks);
            return;
        case Operation::Kind::kAtomic:
            return post_amo({.call = operation.call, .ctx = operation.ctx, .blocking = true}, operation.amo,
                            operation.fetch, dest, operation.operand, operation.compare, operation.element_bytes,
                            operation.pe);
        case Operation::Kind::kPutSignal:
            return put_signal(function, operation.ctx, dest, source, operation.nelems, operation.element_bytes,
                              operation.sig_addr, operation.signal, operation.sig_op, operation.pe);
    }
}

}  // namespace heddle::operations
