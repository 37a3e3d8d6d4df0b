// Node memory: one memfd, mapped once by each PE of the node.
//
//     [ job page | shared area | slot 0 | slot 1 | ... ]                      slot = [ heap | gap | static data | gap ]
//
// There is one slot for each PE of the node (bootstrap/bootstrap.h numbers them). All slots have one stride, a multiple
// of 2 MiB. The gaps stay empty: a single value that starts inside a region and crosses its end harms nothing
// (heddle/abi.h). The shared area is for collectives. A page is committed when it is touched: a large heap costs only
// address space. Threads: set up by runtime's, read by all afterwards.
#pragma once

#include "base/pe_local.h"
#include "os/memfd.h"

#include <cstddef>

namespace heddle::memory {

struct Layout {
    int n_slots;
    size_t shared_offset;  // of the shared area, from the start of the memory
    size_t shared_bytes;
    size_t slots_offset;
    size_t heap_bytes;   // whole pages
    size_t data_offset;  // of the static data, within a slot
    size_t data_bytes;   // for static data: the largest of all PEs, whole pages
    size_t stride;
    size_t total_bytes;  // 0: does not fit into the address space
};

// Plans the memory. first_free: bytes already taken (the job page). Sizes are rounded up to pages.
Layout plan(int n_slots, size_t first_free, size_t shared_bytes, size_t heap_bytes, size_t data_bytes,
            size_t page_bytes = os::page_bytes());

struct NodeMemory {
    Layout layout = {};
    int fd = -1;
    char* base = nullptr;                      // in this PE's address space
    os::Locking locking = os::Locking::kNone;  // of hand_out_heap, in this PE's own heap
    size_t handed_out = 0;                     // from the heap's start: may hold allocations

    char* shared() const { return base + layout.shared_offset; }
    char* heap(int slot) const { return base + layout.slots_offset + layout.stride * static_cast<size_t>(slot); }
    char* data(int slot) const { return heap(slot) + layout.data_offset; }
    // The offset of a slot's static data from the start of the memory.
    size_t data_file_offset(int slot) const { return static_cast<size_t>(data(slot) - base); }
};

extern HEDDLE_PE_LOCAL NodeMemory node_memory;

// Every heap begins at a multiple of this in every PE's address space, so that aligned offsets are aligned addresses.
constexpr size_t kSlotAlignment = 2u << 20;

// Grows fd to the plan (each PE does, to the same size) and maps it. If the address space has such a place, this PE's
// heap begins at a multiple of its size, rounded up to a power of two (at most 1 TiB). Other heaps begin at any
// multiple of kSlotAlignment. The mapping is left out of core dumps and not locked. False on failure, with errno
// set.
bool map_node(int fd, const Layout& layout, int slot);

// Applies HEDDLE_HUGE_PAGES and HEDDLE_FIRST_TOUCH to the heap of this PE's slot; debug messages tell the result.
void prepare_heap(int slot, bool huge_pages, bool first_touch);

// Marks the first `bytes` of this PE's heap as in use: core dumps include them, and they are locked if the program has
// called mlockall(MCL_FUTURE) before init. One system call for every further 2 MiB. One thread at a time.
void hand_out_heap(int slot, size_t bytes);

// Frees the pages of this PE's heap, which then reads as zero. first_touch: prepare_heap's. A heap that has handed out
// nothing is left alone otherwise: the kernel looks for pages in the mappings of all PEs.
void discard_heap(int slot, bool first_touch);

// Tells Valgrind that this PE does not touch the node's memory until prepare_heap.
void leave_node();

}  // namespace heddle::memory
