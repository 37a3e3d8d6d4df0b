#include "memory/node_memory.h"

#include "base/invariant.h"
#include "base/log.h"
#include "os/memfd.h"
#include "os/valgrind.h"

#include <heddle/abi.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

namespace heddle::memory {

HEDDLE_PE_LOCAL NodeMemory node_memory;

namespace {

constexpr size_t kHugePageBytes = kSlotAlignment;  // huge pages need addresses aligned like their offsets
constexpr size_t kMaxHeapAlignment = size_t{1} << 40;
constexpr size_t kLargestMapping = size_t{1} << 46;  // half of the 47 bits of user addresses

// Address space of `bytes` at a multiple of kHugePageBytes; null when refused.
char* reserve(size_t bytes) {
    char* room = static_cast<char*>(os::reserve(bytes + kHugePageBytes));
    if (!room)
        return nullptr;
    char* base = room + (kHugePageBytes - reinterpret_cast<size_t>(room) % kHugePageBytes) % kHugePageBytes;
    if (base != room)
        os::unmap(room, static_cast<size_t>(base - room));
    if (base != room + kHugePageBytes)
        os::unmap(base + bytes, static_cast<size_t>(room + kHugePageBytes - base));
    return base;
}

// Address space of `bytes` in which base + offset, a multiple of kHugePageBytes, is a multiple of alignment. A little
// below the kernel's choice, because more address space may not be allowed (ulimit -v). Unaligned when that is in use.
char* reserve_aligned(size_t bytes, size_t offset, size_t alignment) {
    char* const base = reserve(bytes);
    if (!base)
        return nullptr;
    const size_t at = reinterpret_cast<size_t>(base), over = (at + offset) % alignment;
    if (over == 0)
        return base;
    os::unmap(base, bytes);
    constexpr size_t kPlaces = 16;
    for (size_t below = over; below < over + kPlaces * alignment && below < at; below += alignment) {
        char* const wanted = base - below;
        if (os::reserve_at(wanted, bytes))
            return wanted;
    }
    return reserve(bytes);
}

}  // namespace

Layout plan(int n_slots, size_t first_free, size_t shared_bytes, size_t heap_bytes, size_t data_bytes,
            size_t page_bytes) {
    Layout layout = {};
    layout.n_slots = n_slots;
    layout.shared_offset = os::round_up(first_free, page_bytes);
    layout.shared_bytes = os::round_up(shared_bytes, page_bytes);
    layout.slots_offset = os::round_up(layout.shared_offset + layout.shared_bytes, kHugePageBytes);
    layout.heap_bytes = os::round_up(heap_bytes, page_bytes);
    layout.data_offset = layout.heap_bytes + os::round_up(HEDDLE_GAP_BYTES, page_bytes);
    layout.data_bytes = os::round_up(data_bytes, page_bytes);
    layout.stride = os::round_up(layout.data_offset + layout.data_bytes + HEDDLE_GAP_BYTES, kHugePageBytes);
    HEDDLE_INVARIANT(layout.slots_offset % kSlotAlignment == 0 && layout.stride % kSlotAlignment == 0);
    HEDDLE_INVARIANT(layout.data_offset >= layout.heap_bytes + HEDDLE_GAP_BYTES);  // a gap behind the heap,
    HEDDLE_INVARIANT(layout.stride >=
                     layout.data_offset + layout.data_bytes + HEDDLE_GAP_BYTES);  // and behind the data
    if (layout.stride <= kLargestMapping / static_cast<size_t>(n_slots))
        layout.total_bytes = layout.slots_offset + layout.stride * static_cast<size_t>(n_slots);
    return layout;
}

#ifdef HEDDLE_PES_AS_THREADS
// PEs as threads share one mapping, so that ThreadSanitizer knows one address for each byte.
static bool map_node_alone(int fd, const Layout& layout, int slot);
bool map_node(int fd, const Layout& layout, int slot) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static NodeMemory mapped;
    pthread_mutex_lock(&lock);
    if (mapped.fd != fd) {
        mapped.fd = map_node_alone(fd, layout, slot) ? fd : -1;
        mapped = node_memory;
    }
    node_memory = mapped;
    pthread_mutex_unlock(&lock);
    return node_memory.fd == fd;
}
#define map_node map_node_alone
#endif

bool map_node(int fd, const Layout& layout, int slot) {
    if (layout.total_bytes == 0) {
        errno = ENOMEM;
        return false;
    }
    if (const int error = os::set_memory_size(fd, layout.total_bytes); error != 0) {
        errno = -error;
        return false;
    }
    const size_t alignment = std::clamp(std::bit_ceil(layout.heap_bytes), kSlotAlignment, kMaxHeapAlignment);
    char* base =
        reserve_aligned(layout.total_bytes, layout.slots_offset + layout.stride * static_cast<size_t>(slot), alignment);
    if (!base)
        return false;
    if (!os::map_shared_unlocked(fd, 0, layout.total_bytes, base)) {
        const int error = errno;
        os::unmap(base, layout.total_bytes);
        errno = error;
        return false;
    }
    os::set_dumped(base, layout.total_bytes, false);
    node_memory = {layout, fd, base};
    HEDDLE_INVARIANT(reinterpret_cast<uintptr_t>(node_memory.heap(slot)) % kSlotAlignment == 0);
    return true;
}

void prepare_heap(int slot, bool huge_pages, bool first_touch) {
    char* heap = node_memory.heap(slot);
    os::allow_memory(node_memory.base, node_memory.layout.total_bytes);
    node_memory.locking = os::locking_of_new_memory();
    const size_t bytes = node_memory.layout.heap_bytes;
    if (huge_pages) {
        const bool agreed = madvise(heap, bytes, MADV_HUGEPAGE) == 0;
        HEDDLE_DEBUG("HEDDLE_HUGE_PAGES", agreed ? "the kernel may use huge pages in the heap"
                                                 : "no huge pages in the heap: the kernel was built without them");
    }
    if (first_touch) {
        constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, Linux 5.14; older C libraries lack the name
        const int error = madvise(heap, bytes, kPopulateWrite) == 0 ? 0 : errno;
        HEDDLE_DEBUG("HEDDLE_FIRST_TOUCH", "touching the heap (%zu bytes): %s", bytes,
                     error ? strerror(error) : "done");
    }
}

void hand_out_heap(int slot, size_t bytes) {
    NodeMemory& node = node_memory;
    if (bytes <= node.handed_out)
        return;
    // Whole huge pages: different advice within one would split it.
    const size_t end = std::min(os::round_up(bytes, kHugePageBytes), node.layout.heap_bytes);
    char* const begin = node.heap(slot) + node.handed_out;
    os::set_dumped(begin, end - node.handed_out, true);
    if (const int error = os::lock_memory(begin, end - node.handed_out, node.locking); error != 0)
        HEDDLE_DEBUG("mlockall", "%zu bytes of the heap cannot be locked: %s", end - node.handed_out,
                     os::describe_memory_error(-error));
    node.handed_out = end;
}

void discard_heap(int slot, bool first_touch) {
    if (node_memory.handed_out == 0 && !first_touch)
        return;
    char* const heap = node_memory.heap(slot);
    os::set_dumped(heap, node_memory.layout.heap_bytes, false);
    os::unlock_memory(heap, node_memory.layout.heap_bytes);  // locked pages cannot be given back
    madvise(heap, node_memory.layout.heap_bytes, MADV_REMOVE);
    node_memory.handed_out = 0;
}

void leave_node() {
    os::forbid_memory(node_memory.base, node_memory.layout.total_bytes);
}

}  // namespace heddle::memory
