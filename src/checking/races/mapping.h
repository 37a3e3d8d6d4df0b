// The memory of a search for races, behind the slots of the node's file. Threads: one of the PE, in init.
#pragma once

#include <cstddef>

namespace heddle::checking::races {

// Null, with the reason in errno, when the memory cannot be had. Zeroed the first time in a job; mapped as long as the
// process lives.
char* map_search(size_t bytes);

}  // namespace heddle::checking::races
