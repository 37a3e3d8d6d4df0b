// What the machine offers to this process.
#pragma once

#include <cstddef>

namespace heddle::os {

// CPUs that this process may run on (its affinity mask), at least 1.
int usable_cores();

// Bytes of the last-level cache, as the kernel tells; 32 MiB where it does not.
size_t last_level_cache_bytes();

}  // namespace heddle::os
