// What the machine offers to this process.
#pragma once

namespace heddle::os {

// CPUs that this process may run on (its affinity mask), at least 1.
int usable_cores();

}  // namespace heddle::os
