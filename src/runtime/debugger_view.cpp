// What debuggers read of a PE: its root object and the handles, with the types of all that these lead to. The debugger
// finds members by their names in this file's debug information, which a release build has for this file alone
// (src/CMakeLists.txt, docs/decisions/0050). tools/gdb is the reader. No code uses the view,
// which a linker that collects garbage would drop.
#ifndef HEDDLE_PES_AS_THREADS

#include "bootstrap/bootstrap.h"
#include "context/context.h"
#include "context/request.h"
#include "fabric/network.h"
#include "memory/node_memory.h"
#include "memory/symmetric.h"
#include "runtime/pe.h"
#include "team/team_table.h"

namespace heddle::runtime {

struct DebuggerView {
    const Pe* pe;
    shmem_ctx_t default_ctx;
    shmem_team_t world, shared;
    shmemx_request_t no_request;
    const base::PePointer<context::RequestPool>* requests;
    uintptr_t request_bits;  // of a request's handle, that are not its address
    // Types to which no member of another one leads.
    const bootstrap::PeAddress* address = nullptr;
    const bootstrap::WaitState* wait = nullptr;
    const bootstrap::Waiters* waiters = nullptr;
    const bootstrap::CallRecord* call = nullptr;
};

extern const DebuggerView debugger_view;
__attribute__((used, retain)) const DebuggerView debugger_view = {
    .pe = &this_pe,
    .default_ctx = SHMEM_CTX_DEFAULT,
    .world = SHMEM_TEAM_WORLD,
    .shared = SHMEM_TEAM_SHARED,
    .no_request = SHMEMX_REQUEST_NULL,
    .requests = &context::request_pool,
    .request_bits = alignof(context::Request) - 1,
};

}  // namespace heddle::runtime

#endif
