// Lines of source for addresses of a module, found by addr2line (of binutils or LLVM), if it is on the PATH and the
// module has debug information. For the last message of a PE: a process is started and awaited for some seconds. Safe
// in a signal handler: no memory is allocated, no handler of the program runs, and nothing of the PE is copied.
#pragma once

#include "base/place.h"

#include <array>

namespace heddle::base {

// "heat.c:42"; for code inlined from Heddle's headers, the line of the program. Empty when unknown.
using LineText = std::array<char, 128>;
LineText source_line(const Module& module, uintptr_t linked_address);
// The line of an address in the file at `path`; empty also when the tool takes longer.
constexpr uint64_t kPatienceMs = 10'000;
LineText source_line(const char* path, uintptr_t linked_address, uint64_t patience_ms = kPatienceMs);
// The path of a loaded module's file. False when it is unknown, or has no room in `bytes`.
bool path_of(const Module& module, char* path, size_t bytes);

// Copies text and adds ", FILE:LINE" behind each "at NAME+0xADDRESS" of a loaded module, where the line is known. `to`
// has room for `bytes`; the rest is cut.
void add_source_lines(const char* text, char* to, size_t bytes);

}  // namespace heddle::base
