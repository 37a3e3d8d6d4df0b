// Static data of the executable as symmetric memory. Its writable pages, without those of RELRO, are copied into the
// PE's slot of the node's memory and mapped over themselves, shared. Addresses and protections do not change. Static
// data of other libraries is not symmetric, as the specification says. Forks: fork.h.
//
// Threads: called by runtime at init, by one thread. Writes of other threads to static data during move_static_data are
// lost: init belongs before the program's threads. Signals of the calling thread are delayed until the move is done.
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
    // One range from the first part to the last, so that one comparison tells what is symmetric. The holes between
    // parts hold no variable, and their slots stay untouched.
    uintptr_t begin = 0;
    uintptr_t end = 0;
    std::vector<Part> parts;  // ascending
    size_t bytes() const { return end - begin; }
};

// The range of this executable; empty when it has no writable pages.
StaticRange find_static_data();
// The range of the executable with these program headers, loaded at `base`.
StaticRange find_static_data(const ElfW(Phdr) * headers, size_t count, uintptr_t base);

// Copies the range to file_offset of fd and maps the copy over the range. Reads only pages that were touched, and
// writes only pages that differ from zero: a large .bss costs neither memory nor time. False on failure (errno), with
// no value changed.
bool move_static_data(const StaticRange& range, int fd, size_t file_offset);

}  // namespace heddle::memory
