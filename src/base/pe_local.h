// State that belongs to one PE: a plain global in the library, thread-local where a test build runs PEs as threads of
// one process so that ThreadSanitizer sees across them (docs/decisions/0004). Owned by whoever declares it; written by
// init and finalize only, unless its declaration says otherwise.
#pragma once

#include <heddle/abi.h>  // HEDDLE_PE_LOCAL: the macro, because inlined code needs it too
