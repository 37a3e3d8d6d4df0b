// The memory of a PE, a step of init: node memory, static data, the table of peers.
#pragma once

#include <cstddef>

namespace heddle::runtime {

// Once per process. False with the reason in error: the same in every PE, or this one is to end. Threads: one per PE.
bool build_memory(const char* function, char* error, size_t error_bytes);

}  // namespace heddle::runtime
