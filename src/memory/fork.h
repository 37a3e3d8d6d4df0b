// Fork handlers: what a fork does with the memory of a PE. A child is no PE, and its writes must not reach the PE's
// memory:
//
//     static data     copied just before the fork, from where the PE shares it, to private memory, which the child maps
//                     over it with the protections of that moment
//     node's memory   private in the child, which reads what the PEs write until it writes to a page itself
//
// Only fork() does so. _Fork() and clone() run no handlers: their children share all memory with the PE, as after
// vfork().
//
// The library registers its handlers when it is loaded, so that the executable's handlers run around them: the copy has
// what its prepare handlers wrote, and its child handlers find the copy in place. Handlers that were registered earlier
// run on the PE's own data: those of .preinit_array functions, and any if the library is loaded with dlopen. Threads:
// any may fork; one does at a time. Cost: a copy of the pages that were written, by this PE or by peers.
#pragma once

#include "memory/static_data.h"

namespace heddle::memory {

// Sets the function that children run once the memory is private. Set before init does anything that a child must not
// take for its own.
void run_in_children(void (*begin)());

// Blocks forks by other threads of the process while an object lives.
class NoForks {
  public:
    NoForks();
    ~NoForks();
    NoForks(const NoForks&) = delete;
    NoForks& operator=(const NoForks&) = delete;
};

// Makes children get a copy of the range, whose contents fd has at file_offset. The range must stay valid. To be called
// under NoForks.
void keep_from_children(const StaticRange* range, int fd, size_t file_offset);

}  // namespace heddle::memory
