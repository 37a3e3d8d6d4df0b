// The place where the program has called this library, for calls that do not say so: as base::find_caller, but for each
// operation of a run. Threads: any. Cost: some hundred ns for each frame of the library, once for each path through it.
#pragma once

#include "base/call.h"

namespace heddle::operations {

// True when the return address is one of another module than this library; null is not.
bool is_of_program(const void* address);

// The return address in the first frame of another module; null when there is none. function: that of the interface
// that the program has called.
const void* find_caller(const char* function);

// The call with the place of the program, for an observer that is told of an operation (called_from).
base::Call at_caller(const base::Call& call);
// As at_caller, for a wait, which no inlined code calls.
base::Call at_caller_of_wait(const base::Call& call);

}  // namespace heddle::operations
