// Static data of the executable as symmetric memory: its writable pages, between the end of RELRO and the end of .bss,
// are copied into the PE's slot of the node's memory and mapped over themselves, shared. Addresses stay what they were.
// Only the executable's: the specification calls no other static data symmetric.
// Called by runtime, at init, by one thread. Writes of other threads to static data during move_static_data are lost:
// init belongs before the program's threads.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle::memory {

struct StaticRange {
    uintptr_t begin = 0;  // page aligned
    uintptr_t end = 0;    // page aligned
    size_t bytes() const { return end - begin; }
};

// The range of this executable; empty when it has no writable pages.
StaticRange find_static_data();

// Copies the range to file_offset of fd and maps it over itself. Only pages that differ from zero are written, so a
// large untouched .bss costs no memory. A process forked later gets a private copy, taken just before the fork; in it,
// after_fork runs. False on failure (errno), with nothing changed.
bool move_static_data(const StaticRange& range, int fd, size_t file_offset, void (*after_fork)());

}  // namespace heddle::memory
