// Operations out of line: what inlined code leaves to the slow path becomes a call of the function by its symbol. So a
// tool that defines or wraps the symbol sees it, in programs that were compiled without regard to tools. The hot path
// is closed then, as in observed runs. The call ends in the library's exported function, which carries it out
// (docs/decisions/0083). Threads: any may call; start and stop are init's and finalize's.
#pragma once

#include "base/pe_local.h"

#include <heddle/abi.h>
#include <heddle/request.h>

#include <cstddef>

namespace heddle::operations {

// What inlined functions have as arguments; each has some of these.
struct OutOfLineCall {
    shmem_ctx_t ctx = nullptr;
    void* dest = nullptr;  // of an atomic, its datum
    const void* source = nullptr;
    size_t nelems = 0;
    int pe = 0;
    const void* value = nullptr;  // one of the function's type: what is put, or the operand
    const void* cond = nullptr;   // likewise
    void* fetch = nullptr;
    shmemx_request_t* req = nullptr;
    void* result = nullptr;  // gets what the function returns
};

struct OutOfLineFunction {
    const char* name;
    void (*call)(const OutOfLineCall&);
};

// The export of the plugin libheddle_out_of_line.so, heddle_out_of_line_1: all inlined functions, sorted by name.
struct OutOfLineTable {
    const OutOfLineFunction* functions;
    size_t n;
};

// This PE's; null where operations are inlined.
extern HEDDLE_PE_LOCAL const OutOfLineTable* out_of_line;

// Where the program has called the operation that this thread has out of line now; null: none.
extern constinit thread_local const void* called_out_of_line_from;

// Looks whether operations are to be called out of line: HEDDLE_OUT_OF_LINE says so, or a module before this library
// defines one of the inlined functions. Then loads the plugin and sets Settings::observed. False with the reason in
// error.
bool start_out_of_line(char* error, size_t error_bytes);
void stop_out_of_line();

// Calls the function by its symbol. False, and nothing was done, where the caller is to carry the operation out: it
// comes from within such a call (a tool's own operations), or is none of an inlined function. caller: the program's.
bool call_out_of_line(const char* function, const OutOfLineCall& call, const void* caller);

}  // namespace heddle::operations
