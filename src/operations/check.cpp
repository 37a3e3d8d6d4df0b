#include "operations/check.h"

#include "base/error.h"
#include "base/lifecycle.h"
#include "base/settings.h"
#include "bootstrap/bootstrap.h"
#include "context/context.h"
#include "memory/symmetric.h"
#include "operations/observer.h"

#include <heddle/constants.h>
#include <heddle/hot_path.h>
#include <heddle/request.h>
#include <unistd.h>

namespace heddle::operations {

using base::fatal;
using base::Lifecycle;

namespace {

// Ends the PE unless the bytes, which lie in the heap, belong to one allocation.
void check_allocated(const char* function, const char* argument, const void* address, size_t bytes) {
    memory::Symmetric& memory = *memory::symmetric;
    const size_t offset = reinterpret_cast<uintptr_t>(address) - memory.heap.base;
    pthread_mutex_lock(&memory.lock);
    const bool start = memory.allocator->is_allocated(offset, 1);
    const bool whole = start && memory.allocator->is_allocated(offset, bytes);
    pthread_mutex_unlock(&memory.lock);
    if (!start)
        fatal(function, "%s %p lies in symmetric heap that is not allocated: it was freed, or never allocated",
              argument, address);
    if (!whole)
        fatal(function, "%s %p: %zu bytes from there cross the end of the allocation that it lies in", argument,
              address, bytes);
}

}  // namespace

void require_running(const char* function) {
    switch (base::lifecycle) {
        case Lifecycle::kRunning:
            return;
        case Lifecycle::kBeforeInit:
            fatal(function, "called before shmem_init");
        case Lifecycle::kFinalized:
            fatal(function, "called after shmem_finalize");
        case Lifecycle::kExiting:
            if (base::runs_exit_handlers)
                fatal(function, "called in an exit handler behind shmem_global_exit");
            for (;;) pause();  // this thread ends with its PE
        case Lifecycle::kForkedChild:
            fatal(function,
                  "called in a child that a PE forked: only the PE itself may, or a program that it executes");
    }
}

bool may_give_back(const char* function) {
    if (base::lifecycle == Lifecycle::kForkedChild)
        return false;
    require_running(function);
    return true;
}

int require_target(const char* function, shmem_ctx_t ctx, int pe) {
    require_running(function);
    if (ctx == SHMEM_CTX_INVALID)
        fatal(function, "ctx is SHMEM_CTX_INVALID: right would be SHMEM_CTX_DEFAULT or a context that was created");
    if (!context::is_alive(ctx))
        fatal(function, "ctx %p is no context: it was destroyed, or never created", static_cast<const void*>(ctx));
    const context::Context& context = context::context_of(ctx);
    const base::Members members = context.members;
    if (pe < 0 || pe >= members.size)
        fatal(function, "pe %d is out of range: the %s has PEs 0 to %d", pe,
              context.team == SHMEM_TEAM_WORLD ? "job" : "context's team", members.size - 1);
    return members.pe(pe);
}

void keep_order(shmem_ctx_t ctx) {
    if (context::context_of(ctx).options & SHMEMX_CTX_ORDERED)
        HEDDLE_FENCE(__ATOMIC_ACQ_REL);  // as shmem_fence
}

size_t extent(const char* function, size_t nelems, size_t element_bytes) {
    size_t bytes;
    if (__builtin_mul_overflow(nelems, element_bytes, &bytes) || bytes > PTRDIFF_MAX)
        fatal(function, "nelems %zu is too large: elements of %zu bytes would fill more than an address space", nelems,
              element_bytes);
    return bytes;
}

char* require_symmetric(const char* function, const char* argument, const void* address, size_t bytes, int pe) {
    const memory::Symmetric& memory = *memory::symmetric;
    const bool in_heap = memory.heap.holds(address);
    if (!in_heap && !memory.data.holds(address)) {
        char text[512];
        memory::describe_not_symmetric(address, text, sizeof text);
        fatal(function, "%s %p %s", argument, address, text);
    }
    const memory::SymmetricRegion& region = in_heap ? memory.heap : memory.data;
    if (bytes > region.bytes_from(address))
        fatal(function, "%s %p: %zu bytes from there cross the end of the %s [%#zx, %#zx)", argument, address, bytes,
              in_heap ? "heap" : "static data", region.base, region.base + region.bytes);
    if (base::settings.check && in_heap && bytes > 0)
        check_allocated(function, argument, address, bytes);
    return memory::address_on(address, pe);
}

char* require_atomic(const char* function, const char* argument, const void* address, size_t bytes, int pe) {
    if (reinterpret_cast<uintptr_t>(address) % bytes != 0)
        fatal(function, "%s %p is not a multiple of %zu, as an atomic of that size needs", argument, address, bytes);
    return require_symmetric(function, argument, address, bytes, pe);
}

void require_pointer(const char* function, const char* argument, const void* address) {
    if (!address)
        fatal(function, "%s is NULL", argument);
}

void require_disjoint(const char* function, const void* to, const void* from, size_t bytes) {
    const uintptr_t a = reinterpret_cast<uintptr_t>(to), b = reinterpret_cast<uintptr_t>(from);
    if (a < b + bytes && b < a + bytes)
        fatal(function, "source [%#zx, %#zx) and dest [%#zx, %#zx) overlap", b, b + bytes, a, a + bytes);
}

void require_comparison(const char* function, int cmp) {
    if (cmp < SHMEM_CMP_EQ || cmp > SHMEM_CMP_LE)
        fatal(function, "cmp %d is not a comparison: right would be SHMEM_CMP_EQ, NE, GT, GE, LT or LE (%d to %d)", cmp,
              SHMEM_CMP_EQ, SHMEM_CMP_LE);
}

void check_ivars(const char* function, const char* argument, const void* ivars, size_t nelems, size_t element_bytes) {
    if (!base::settings.check || nelems == 0)
        return;
    if (Observer* const told = find_observer())
        told->look();
    require_pointer(function, argument, ivars);
    if (reinterpret_cast<uintptr_t>(ivars) % element_bytes != 0)
        fatal(function, "%s %p is not a multiple of %zu", argument, ivars, element_bytes);
    require_symmetric(function, argument, ivars, extent(function, nelems, element_bytes), bootstrap::job.pe);
}

}  // namespace heddle::operations
