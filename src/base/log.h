// Messages that appear only when SHMEM_DEBUG is set. Any thread.
#pragma once

#include "base/error.h"

namespace heddle::base {

// Set by init from the settings.
extern HEDDLE_PE_LOCAL bool debug_enabled;

}  // namespace heddle::base

// Evaluates its arguments only when debugging.
#define HEDDLE_DEBUG(function, ...)                        \
    do {                                                   \
        if (::heddle::base::debug_enabled)                 \
            ::heddle::base::report(function, __VA_ARGS__); \
    } while (0)
