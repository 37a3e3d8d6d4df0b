// The node's memory: one memfd, mapped once by each PE.
//
//     [ job page | shared area | slot 0 | slot 1 | ... ]                      slot = [ heap | gap | static data | gap ]
//
// A slot for each PE of the node (bootstrap/bootstrap.h says whose it is). All slots have one stride, a multiple of 2
// MiB. The gaps belong to nobody, so that one value which starts inside a region and crosses its end harms nothing
// (heddle/abi.h). The shared area is for collectives. Pages are committed as they are touched: address space is the
// only price of a large heap. Set up by runtime, one thread; read by all afterwards.
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
    size_t data_bytes;   // room for static data: the largest of all PEs, whole pages
    size_t stride;
    size_t total_bytes;  // 0: does not fit into the address space
};

// first_free: bytes of the memory already taken (the job page). Sizes are rounded up to pages.
Layout plan(int n_slots, size_t first_free, size_t shared_bytes, size_t heap_bytes, size_t data_bytes,
            size_t page_bytes = os::page_bytes());

struct NodeMemory {
    Layout layout = {};
    int fd = -1;
    char* base = nullptr;                      // where this PE has it mapped
    os::Locking locking = os::Locking::kNone;  // of what is handed out of the own heap
    size_t handed_out = 0;                     // bytes from the heap's start on that may hold allocations

    char* shared() const { return base + layout.shared_offset; }
    char* heap(int slot) const { return base + layout.slots_offset + layout.stride * static_cast<size_t>(slot); }
    char* data(int slot) const { return heap(slot) + layout.data_offset; }
    // Of a slot's static data, from the start of the memory.
    size_t data_file_offset(int slot) const { return static_cast<size_t>(data(slot) - base); }
};

extern HEDDLE_PE_LOCAL NodeMemory node_memory;

// Every heap begins at a multiple of this in every PE, so that aligned offsets are aligned addresses.
constexpr size_t kSlotAlignment = 2u << 20;

// Grows fd to the plan (all PEs do, with the same size) and maps it: where this PE's heap, that of `slot`, begins at a
// multiple of the power of two from its size on (1 TiB at most), if the address space has such a place. Other heaps
// begin at any multiple of kSlotAlignment. No part of it belongs into core dumps, and none is locked. False on failure,
// with errno set.
bool map_node(int fd, const Layout& layout, int slot);

// Applies HEDDLE_HUGE_PAGES and HEDDLE_FIRST_TOUCH to the heap of this PE's slot; says in debug messages whether they
// took effect.
void prepare_heap(int slot, bool huge_pages, bool first_touch);

// The first `bytes` of the heap of this PE's slot are in use: they belong into its core dumps, and are locked where it
// has called mlockall(MCL_FUTURE) before init. One system call for every further 2 MiB. One thread at a time.
void hand_out_heap(int slot, size_t bytes);

// Gives the pages of the heap of this PE's slot back; they read as zero afterwards.
void discard_heap(int slot);

// This PE does not touch the node's memory until prepare_heap: what checks programs may know.
void leave_node();

}  // namespace heddle::memory
