#include "runtime/exit.h"

#include "bootstrap/bootstrap.h"
#include "os/clock.h"
#include "os/process.h"
#include "progress/wait_policy.h"
#include "runtime/runtime.h"

#include <dlfcn.h>
#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace heddle::runtime {

using bootstrap::job;

namespace {

pid_t process = 0;  // the process that registered
bool ends_well = false;

void finish() {
    if (ends_well)
        finalize_at_exit();
    bootstrap::part_from_launcher();
}

// True when the library was loaded with the program: its destructors then run after the program's, and before those of
// libraries that it has loaded itself.
bool is_loaded_with_program() {
    return dlsym(RTLD_DEFAULT, "shmem_init") != nullptr;  // a library loaded by dlopen is only visible there on request
}

void exit_begins(int status, void*) {
    if (getpid() != process)
        return;
    ends_well = status == 0 && !progress::is_waiting();
    if (!is_loaded_with_program())
        finish();
}

// How far a process is at its end (PeRecord::end).
constexpr uint64_t kLongestNapNs = 50 * os::kMillisecondNs;
enum End : uint32_t { kNotYet, kHasFlushed, kMayExit };

// Returns when all other PEs of the page are as far, or have ended.
void meet_at_end(End end) {
    const uint32_t space = os::process_namespace();
    // Relaxed, here and below: output and signals are the kernel's.
    job.own_record().end.store(end, std::memory_order_relaxed);
    for (int slot = 0; slot < job.n_slots; ++slot) {
        const bootstrap::PeRecord& other = job.record(slot);
        const auto is_awaited = [&] {
            const int pid = other.pid.load(std::memory_order_relaxed);
            // Of a process of another namespace its end would not be seen.
            return slot != job.slot && other.end.load(std::memory_order_relaxed) < end && pid != 0 && space != 0 &&
                   other.process_namespace.load(std::memory_order_relaxed) == space && !os::has_ended(pid, space);
        };
        for (uint64_t nap = os::kMillisecondNs; is_awaited(); nap = std::min(nap * 2, kLongestNapNs)) os::sleep_ns(nap);
    }
}

// Ends this PE of a job that has reported races. Where oshrun is not the launcher, each PE has the status, and srun
// ends the others at the first of them. So no PE ends before all have flushed their output, and ignore SIGTERM. Other
// streams come last: a thread that reads one holds its lock for as long.
[[noreturn]] void end_with_races() {
    flush_output();
    meet_at_end(kHasFlushed);
    for (const int ending : {SIGTERM, SIGINT}) signal(ending, SIG_IGN);
    meet_at_end(kMayExit);
    fflush(nullptr);
    _exit(bootstrap::kStatusRaces);
}

__attribute__((destructor)) void library_ends() {
    if (process == 0 || getpid() != process)
        return;
    finish();
    // oshrun gives the job this status itself.
    if (ends_well && job.launcher_pid == 0 && job.page->races.load(std::memory_order_relaxed) != 0)
        end_with_races();
}

}  // namespace

void prepare_exit() {
    if (process != 0 || bootstrap::job.as_thread)
        return;
    process = getpid();
    on_exit(exit_begins, nullptr);
}

void flush_output() {
    for (FILE* stream : {stdout, stderr}) {
        if (ftrylockfile(stream) == 0) {
            fflush_unlocked(stream);
            funlockfile(stream);
        }
    }
}

}  // namespace heddle::runtime
