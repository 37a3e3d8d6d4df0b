// Static data of the executable as symmetric memory: its writable pages, less those of RELRO, are copied into the PE's
// slot of the node's memory and mapped over themselves, shared. Addresses and protections stay what they were. Only the
// executable's: the specification calls no other static data symmetric. What a fork does to it: fork.h.
// Called by runtime, at init, by one thread. Writes of other threads to static data during move_static_data are lost:
// init belongs before the program's threads. Signals of the calling thread wait for its end.
#pragma once

#include <link.h>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace heddle::memory {

struct StaticRange {
    struct Part {
        uintptr_t begin;  // page aligned, both
        uintptr_t end;
        size_t bytes() const { return end - begin; }
    };
    // One range from the first part to the last, as one comparison tells what is symmetric. No variable lies in the
    // holes between parts, whose slots stay untouched.
    uintptr_t begin = 0;
    uintptr_t end = 0;
    std::vector<Part> parts;  // ascending
    size_t bytes() const { return end - begin; }
};

// The range of this executable; empty when it has no writable pages.
StaticRange find_static_data();
// The same of the executable with these program headers, loaded at `base` above the addresses that they say.
StaticRange find_static_data(const ElfW(Phdr) * headers, size_t count, uintptr_t base);

// Copies the range to file_offset of fd and maps it over itself. Looks only at pages that have been touched, and writes
// those that differ from zero: a large .bss costs neither memory nor time. False on failure (errno), with no value
// changed.
bool move_static_data(const StaticRange& range, int fd, size_t file_offset);

}  // namespace heddle::memory
