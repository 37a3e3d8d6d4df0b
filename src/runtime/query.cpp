// The queries, and global exit.

#include "base/lifecycle.h"
#include "bootstrap/bootstrap.h"
#include "memory/symmetric.h"
#include "operations/check.h"
#include "runtime/runtime.h"

#include <heddle/constants.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace heddle::runtime {

using bootstrap::job;
using operations::require_pointer;
using operations::require_running;

void query_initialized(const char* function, int* initialized) {
    require_pointer(function, "initialized", initialized);
    *initialized = base::lifecycle == base::Lifecycle::kRunning;
}

void query_thread(const char* function, int* provided) {
    require_running(function);
    require_pointer(function, "provided", provided);
    *provided = SHMEM_THREAD_MULTIPLE;
}

// The end of a program by exit(), as C and C++ have it: exit handlers run, destructors of static objects, and every
// stream is flushed. The launcher hears of it first, so that a handler that hangs holds up nobody: it ends the others
// at once, and this PE behind its grace period.
void global_exit(const char* function, int status) {
    require_running(function);
    base::runs_exit_handlers = true;  // ahead of what makes others look
    base::lifecycle = base::Lifecycle::kExiting;
    signal(SIGTERM, SIG_IGN);  // which the launcher sends to all PEs
    bootstrap::request_exit(bootstrap::ExitRequest::kGlobalExit, status);
    if (bootstrap::job.launcher) {
        // Another launcher may leave no time: what was printed is shown first, unless a thread holds the stream for
        // ever.
        for (FILE* stream : {stdout, stderr}) {
            if (ftrylockfile(stream) == 0) {
                fflush_unlocked(stream);
                funlockfile(stream);
            }
        }
        bootstrap::end_launched_job(status);
    }
    exit(status);
}

int my_pe(const char* function) {
    require_running(function);
    return job.pe;
}

int n_pes(const char* function) {
    require_running(function);
    return job.n_pes;
}

int pe_accessible(const char* function, int pe) {
    require_running(function);
    return pe >= 0 && pe < job.n_pes;
}

int addr_accessible(const char* function, const void* addr, int pe) {
    return pe_accessible(function, pe) && (memory::symmetric->heap.holds(addr) || memory::symmetric->data.holds(addr));
}

void* pointer(const char* function, const void* dest, int pe) {
    return pe_accessible(function, pe) ? memory::address_on(dest, pe) : nullptr;
}

void info_get_version(const char* function, int* major, int* minor) {
    require_pointer(function, "major", major);
    require_pointer(function, "minor", minor);
    *major = SHMEM_MAJOR_VERSION;
    *minor = SHMEM_MINOR_VERSION;
}

void info_get_name(const char* function, char* name) {
    require_pointer(function, "name", name);
    static_assert(sizeof SHMEM_VENDOR_STRING <= SHMEM_MAX_NAME_LEN);
    memcpy(name, SHMEM_VENDOR_STRING, sizeof SHMEM_VENDOR_STRING);
}

}  // namespace heddle::runtime
