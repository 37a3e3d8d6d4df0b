// The queries of the interface, and shmem_global_exit.

#include "base/counters.h"
#include "base/error.h"
#include "base/lifecycle.h"
#include "bootstrap/bootstrap.h"
#include "fabric/network.h"
#include "memory/symmetric.h"
#include "operations/check.h"
#include "operations/observer.h"
#include "profiling/profiling.h"
#include "runtime/exit.h"
#include "runtime/network.h"
#include "runtime/runtime.h"

#include <heddle/constants.h>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iterator>

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

// Ends the program by exit(), as C and C++ define it: exit handlers and destructors of static objects run, and streams
// are flushed. The launcher is told first: it ends the other PEs at once, and this one after a grace period, so that a
// handler that hangs delays nobody.
void global_exit(const char* function, int status) {
    require_running(function);
    base::runs_exit_handlers = true;  // before the stores that make other threads check it
    base::lifecycle = base::Lifecycle::kExiting;
    signal(SIGTERM, SIG_IGN);  // the launcher sends SIGTERM to all PEs
    bootstrap::request_exit(bootstrap::ExitRequest::kGlobalExit, status);
    if (bootstrap::job.launcher) {
        flush_output();  // another launcher may leave no time
        bootstrap::end_launched_job(status);
    }
    exit(status);
}

namespace {

const base::CounterRow& counter_row(const char* function, int index) {
    require_running(function);
    constexpr int kNum = std::size(base::kCounterRows);
    if (index < 0 || index >= kNum)
        base::fatal(function, "index %d is no counter's: right would be 0 to %d", index, kNum - 1);
    return base::kCounterRows[index];
}

}  // namespace

int counter_num(const char* function) {
    require_running(function);
    return std::size(base::kCounterRows);
}

const char* counter_name(const char* function, int index) {
    return counter_row(function, index).name;
}

const char* counter_description(const char* function, int index) {
    return counter_row(function, index).description;
}

uint64_t counter_value(const char* function, int index) {
    const base::CounterRow& row = counter_row(function, index);
    if (fabric::network)
        count_control_messages();
    return (base::counters->*row.counter).read();
}

int my_pe(const char* function) {
    require_running(function);
    return job.pe;
}

void pcontrol(int level) {
    profiling::control(level);
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
    void* const there = pe_accessible(function, pe) ? memory::address_on(dest, pe) : nullptr;
    if (operations::Observer* const told = operations::find_observer(); told && there && pe != job.pe)
        told->hand_out_address();
    return there;
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
