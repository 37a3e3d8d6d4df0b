// The memory collectives (section 9.3). Threads: one per PE. Barriers are where the specification puts them.

#include "base/error.h"
#include "base/log.h"
#include "base/settings.h"
#include "bootstrap/bootstrap.h"
#include "collective/collective_call.h"
#include "collective/internode/internode.h"
#include "collective/sync.h"
#include "memory/node_memory.h"
#include "memory/symmetric.h"
#include "operations/check.h"
#include "operations/observer.h"
#include "os/locked.h"
#include "runtime/runtime.h"

#include <heddle/constants.h>
#include <algorithm>
#include <bit>
#include <cstring>

namespace heddle::runtime {

using base::fatal;
using collective::Call;
using memory::Allocator;
using memory::symmetric;

namespace {

char* address_of(size_t offset) {
    return reinterpret_cast<char*>(symmetric->heap.base) + offset;
}

size_t offset_of(const void* ptr) {
    return reinterpret_cast<uintptr_t>(ptr) - symmetric->heap.base;
}

using collective::Shape;
using Argument = Shape::Argument;

// All PEs must be in the same call with the same arguments, or their heaps would differ. barrier_all_comparing reports
// a difference afterwards. In a checked run check_comparison reports it before anything has changed, also in calls
// without a barrier.
void check_comparison(const Call& call, const Shape& shape) {
    if (base::settings.check)
        collective::CollectiveCall(call, SHMEM_TEAM_WORLD, shape);
}

[[noreturn]] void not_allocated(const char* function, const void* ptr) {
    fatal(function, "ptr %p was not allocated from the symmetric heap [%#zx, %#zx), or was freed already", ptr,
          symmetric->heap.base, symmetric->heap.base + symmetric->heap.bytes);
}

// PEs compare offsets; a pointer outside the heap ends the PE.
Argument pointer_argument(const char* function, const void* ptr) {
    if (!symmetric->heap.holds(ptr))
        not_allocated(function, ptr);
    return {"ptr, from the start of the heap,", static_cast<int64_t>(offset_of(ptr))};
}

void explain_exhaustion(const char* function, size_t size, size_t alignment) {
    if (!base::settings.debug && !base::settings.check)
        return;
    const Allocator& allocator = *symmetric->allocator;
    base::complain(function,
                   "no room for %zu bytes (alignment %zu): %zu of %zu bytes of the heap are free, the largest piece is "
                   "%zu; SHMEM_SYMMETRIC_SIZE sets the size of the heap, now %zu",
                   size, alignment, allocator.free_bytes(), symmetric->program_bytes(), allocator.largest_free(),
                   symmetric->program_bytes());
}

// True when the heap of every PE begins at a multiple of alignment, so that aligned offsets are aligned addresses.
bool all_heaps_begin_at(const Call& call, size_t size, size_t alignment) {
    collective::CollectiveCall coll(
        call, SHMEM_TEAM_WORLD,
        {{{"size", static_cast<int64_t>(size)}, {"alignment", static_cast<int64_t>(alignment)}}});
    return collective::is_unanimous(coll, symmetric->heap.base % alignment == 0);
}

void explain_alignment(const char* function, size_t alignment) {
    if (base::settings.debug || base::settings.check)
        base::complain(
            function,
            "no room at a multiple of %zu: not every heap begins at one, that of this PE at %#zx; alignments "
            "up to the size of the heap are met, SHMEM_SYMMETRIC_SIZE sets it, now %zu",
            alignment, symmetric->heap.base, symmetric->program_bytes());
}

// Allocates without a barrier. NULL when there is no room, with an explanation in debug or checked runs.
char* take(const char* function, size_t size, size_t alignment) {
    const os::Locked lock(symmetric->lock);
    const size_t offset = symmetric->allocator->allocate(size, alignment);
    if (offset == Allocator::kNone) {
        explain_exhaustion(function, size, alignment);
        return nullptr;
    }
    memory::hand_out_heap(bootstrap::job.slot, offset + size);
    return address_of(offset);
}

void give(const Call& call, void* ptr) {
    if (operations::Observer* const told = operations::find_observer())
        told->free(call, ptr);
    const os::Locked lock(symmetric->lock);
    if (!symmetric->allocator->release(offset_of(ptr)))
        not_allocated(call.function, ptr);
}

void tell_of(const Call& call, const void* block, size_t bytes) {
    if (operations::Observer* const told = operations::find_observer(); told && block)
        told->allocate(call, block, bytes);
}

void* allocate_with_barrier(const Call& call, size_t size, size_t alignment) {
    operations::require_running(call.function);
    const Shape shape = {{{"size", static_cast<int64_t>(size)}, {"alignment", static_cast<int64_t>(alignment)}}};
    check_comparison(call, shape);
    if (size == 0)
        return nullptr;
    void* ptr = take(call.function, size, alignment);
    tell_of(call, ptr, size);
    collective::barrier_all_comparing(call, shape);
    return ptr;
}

// Bytes of the allocation at ptr; ends the PE when there is none.
size_t allocated_bytes(const char* function, const void* ptr) {
    const os::Locked lock(symmetric->lock);
    const size_t bytes = symmetric->allocator->size_of(offset_of(ptr));
    if (bytes == 0)
        not_allocated(function, ptr);
    return bytes;
}

bool resize_in_place(const void* ptr, size_t size) {
    const os::Locked lock(symmetric->lock);
    const size_t offset = offset_of(ptr);
    if (!symmetric->allocator->resize(offset, size))
        return false;
    memory::hand_out_heap(bootstrap::job.slot, offset + size);
    return true;
}

}  // namespace

void* allocate(const Call& call, size_t size) {
    return allocate_with_barrier(call, size, Allocator::kUnit);
}

void* allocate_zeroed(const Call& call, size_t count, size_t size) {
    operations::require_running(call.function);
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        bytes = SIZE_MAX;  // more than any heap: NULL and the usual message
    const Shape shape = {{{"count * size", static_cast<int64_t>(bytes)}}};
    check_comparison(call, shape);
    if (bytes == 0)
        return nullptr;
    char* ptr = take(call.function, bytes, Allocator::kUnit);
    if (ptr)
        memset(ptr, 0, bytes);
    tell_of(call, ptr, bytes);
    collective::barrier_all_comparing(call, shape);
    return ptr;
}

void* allocate_aligned(const Call& call, size_t alignment, size_t size) {
    operations::require_running(call.function);
    if (alignment % sizeof(void*) != 0 || !std::has_single_bit(alignment)) {
        base::complain(call.function, "alignment %zu is wrong: right would be a power of two that is a multiple of %zu",
                       alignment, sizeof(void*));
        return nullptr;
    }
    if (size != 0 && alignment > memory::kSlotAlignment && !all_heaps_begin_at(call, size, alignment)) {
        explain_alignment(call.function, alignment);
        collective::barrier_all(call);
        return nullptr;
    }
    return allocate_with_barrier(call, size, alignment);
}

void* allocate_with_hints(const Call& call, size_t size, long hints) {
    operations::require_running(call.function);
    constexpr long kKnown = SHMEM_MALLOC_ATOMICS_REMOTE | SHMEM_MALLOC_SIGNAL_REMOTE;
    if (hints & ~kKnown)
        HEDDLE_DEBUG(call.function, "hints %#lx: the bits %#lx are unknown and ignored", hints, hints & ~kKnown);
    return allocate(call, size);
}

void* reallocate(const Call& call, void* ptr, size_t size) {
    if (!ptr)
        return allocate(call, size);
    operations::require_running(call.function);
    const Shape shape = {{{"size", static_cast<int64_t>(size)}, pointer_argument(call.function, ptr)}};
    check_comparison(call, shape);
    if (size == 0) {
        collective::barrier_all_comparing(call, shape);
        give(call, ptr);
        return nullptr;
    }
    collective::barrier_all_comparing(call, shape);  // no PE may still write to the block, which may move
    const size_t old_bytes = allocated_bytes(call.function, ptr);
    void* result = ptr;
    if (!resize_in_place(ptr, size)) {
        result = take(call.function, size, Allocator::kUnit);
        if (result) {
            memcpy(result, ptr, std::min(old_bytes, size));
            give(call, ptr);
        }
    }
    tell_of(call, result, size);
    collective::barrier_all(call);
    return result;
}

void release(const Call& call, void* ptr) {
    if (!operations::may_give_back(call.function) || !ptr)
        return;
    const Shape shape = {{pointer_argument(call.function, ptr)}};
    check_comparison(call, shape);
    collective::barrier_all_comparing(call, shape);
    give(call, ptr);
}

}  // namespace heddle::runtime
