#include "runtime/exit.h"

#include "bootstrap/bootstrap.h"
#include "progress/wait_policy.h"
#include "runtime/runtime.h"

#include <dlfcn.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>

namespace heddle::runtime {

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

__attribute__((destructor)) void library_ends() {
    if (process == 0 || getpid() != process)
        return;
    finish();
    // oshrun gives the job this status itself.
    const bootstrap::Job& job = bootstrap::job;
    if (ends_well && job.launcher_pid == 0 && job.page->races.load(std::memory_order_relaxed) != 0) {
        fflush(nullptr);
        _exit(bootstrap::kStatusRaces);
    }
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
