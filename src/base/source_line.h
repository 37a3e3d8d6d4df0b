// The line of source at an address of a module, by addr2line (of binutils or LLVM) where it is on the PATH and the
// module has debug information. For the last message of a PE: a process is started, and waited for up to some seconds.
// No memory is allocated, no handler of the program runs, and nothing of the PE is copied: a signal's handler may call
// it.
#pragma once

#include "base/place.h"

#include <array>

namespace heddle::base {

// "heat.c:42", of the program where an inlined function of Heddle's headers is there; empty when nobody knows it.
using LineText = std::array<char, 128>;
LineText source_line(const Module& module, uintptr_t linked_address);

// The text once more with the lines of all places in it that this process can tell: behind each "at NAME+0xADDRESS" of
// a module that is loaded here comes ", FILE:LINE". `to` has room for `bytes`; what does not fit is cut.
void add_source_lines(const char* text, char* to, size_t bytes);

}  // namespace heddle::base
