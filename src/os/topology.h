// What the machine offers to this process.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle::os {

// CPUs that this process may run on (its affinity mask), at least 1.
int usable_cores();

// The same, a bit each; those beyond 64 * words are left out.
void usable_cpus(uint64_t* cpus, size_t words);

// Bytes of the last-level cache, as the kernel tells; 32 MiB where it does not.
size_t last_level_cache_bytes();

}  // namespace heddle::os
