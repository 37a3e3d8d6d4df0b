// Debug messages, printed only when SHMEM_DEBUG is set. Threads: any.
#pragma once

#include "base/error.h"

namespace heddle::base {

// Set by init from the settings.
extern HEDDLE_PE_LOCAL bool debug_enabled;

}  // namespace heddle::base

// Evaluates its arguments only when debug_enabled.
#define HEDDLE_DEBUG(function, ...)                        \
    do {                                                   \
        if (::heddle::base::debug_enabled)                 \
            ::heddle::base::report(function, __VA_ARGS__); \
    } while (0)
