// The life cycle of this PE, from before init to its end. Written by runtime only.
#pragma once

#include "base/pe_local.h"

namespace heddle::base {

enum class Lifecycle {
    kBeforeInit,
    kRunning,
    kFinalized,
    kExiting,      // shmem_global_exit runs the program's exit handlers
    kForkedChild,  // the child of a fork of a PE, in which no operation may run
};

extern HEDDLE_PE_LOCAL Lifecycle lifecycle;
extern constinit thread_local bool runs_exit_handlers;  // in kExiting: true in the thread that runs them

}  // namespace heddle::base
