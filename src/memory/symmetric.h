// What an address is: symmetric heap, static data, or neither. The slow path's and the diagnostics' view; the hot path
// asks heddle_abi_1. Set up by runtime; read by all threads; the heap's books are under a lock.
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
    int pe = 0;  // this one
    int n_pes = 0;
    bool has_network = false;             // some PEs are on other nodes
    heddle_peer* peers = nullptr;         // of all PEs
    heddle_peer* published = nullptr;     // the hot path's table: as peers while it is open, zeroes otherwise
    const heddle_peer* nobody = nullptr;  // the table of contexts that are not alive: zeroes
    Allocator* allocator = nullptr;
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // of allocator
};

// This PE's; one object per PE, valid between init and finalize.
extern HEDDLE_PE_LOCAL base::PePointer<Symmetric> symmetric;

// Where this PE loads and stores pe's copy of address; null when address is not symmetric, or pe on another node. pe is
// in range.
char* address_on(const void* address, int pe);

// Writes what the address is into text, for a message: "is not symmetric: heap is [..), data is [..)", with the shared
// library that it belongs to where there is one.
void describe_not_symmetric(const void* address, char* text, size_t text_bytes);

}  // namespace heddle::memory
