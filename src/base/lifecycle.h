// Where this PE is in its life. Written by runtime only.
#pragma once

#include "base/pe_local.h"

namespace heddle::base {

enum class Lifecycle {
    kBeforeInit,
    kRunning,
    kFinalized,
    kExiting,      // shmem_global_exit runs the program's exit handlers
    kForkedChild,  // a fork of a PE: a process of its own, in which no operation may run
};

extern HEDDLE_PE_LOCAL Lifecycle lifecycle;
extern constinit thread_local bool runs_exit_handlers;  // of kExiting: the thread that does

}  // namespace heddle::base
