// Symmetric memory of this PE: tells whether an address is in the heap, in static data, or neither. Used by the slow
// path and by messages; the hot path reads heddle_abi_1. Set up by runtime, read by all threads; the allocator has a
// lock.
#pragma once

#include "base/pe_local.h"
#include "memory/allocator.h"

#include <heddle/abi.h>
#include <pthread.h>
#include <cstddef>
#include <cstdint>

namespace heddle::memory {

// The heap or the static data of this PE, at its own addresses; fabric::Region is what a network reaches.
struct SymmetricRegion {
    uintptr_t base = 0;
    size_t bytes = 0;

    bool holds(const void* address) const { return reinterpret_cast<uintptr_t>(address) - base < bytes; }
    // Bytes from address to the end of the region that holds it.
    size_t bytes_from(const void* address) const { return bytes - (reinterpret_cast<uintptr_t>(address) - base); }
};

struct Symmetric {
    SymmetricRegion heap;
    SymmetricRegion data;
    int pe = 0;  // this PE
    int n_pes = 0;
    bool has_network = false;             // some PEs are on other nodes
    heddle_peer* peers = nullptr;         // of all PEs
    heddle_peer* published = nullptr;     // the hot path's table: peers while it is open, zeroes otherwise
    const heddle_peer* nobody = nullptr;  // the table of contexts that are not alive: zeroes
    Allocator* allocator = nullptr;
    size_t own_bytes = 0;                              // at the start of the heap, for the tools of a run
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // of allocator

    // What the program may have of the heap.
    size_t program_bytes() const { return heap.bytes - own_bytes; }
};

// This PE's symmetric memory; valid between init and finalize.
extern HEDDLE_PE_LOCAL base::PePointer<Symmetric> symmetric;

// The address at which this PE reaches pe's copy of `address`; null when `address` is not symmetric, or pe is on
// another node. pe must be in range.
char* address_on(const void* address, int pe);

// Writes for a message what the address is: "is not symmetric: heap is [..), data is [..)", and the name of the shared
// library that it belongs to, if any.
void describe_not_symmetric(const void* address, char* text, size_t text_bytes);

}  // namespace heddle::memory
