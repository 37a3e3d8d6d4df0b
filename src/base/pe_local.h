// HEDDLE_PE_LOCAL: state that belongs to one PE. A plain global in the library; thread-local in the test build that
// runs PEs as threads of one process for ThreadSanitizer (docs/decisions/0004). Written by init and finalize only,
// unless the declaration says otherwise.
#pragma once

#include <heddle/abi.h>  // HEDDLE_PE_LOCAL: the macro, because inlined code needs it too
