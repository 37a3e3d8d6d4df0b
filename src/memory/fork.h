// What a fork does with the memory of a PE. A child is no PE, and what it writes must not be its parent's:
//
//     static data     copied just before the fork, from where the PE shares it, to private memory that the child maps
//     over
//                     it, with the protections of that moment
//     node's memory   private in the child: it reads what the PEs write, until it writes to a page itself
//
// Only fork() does so. _Fork() and clone() run no handlers: their children share all this with the PE, as after
// vfork().
//
// The handlers are registered when the library is loaded, so that those of the executable run around them: what its
// prepare handlers do is in the copy, and its child handlers find the copy in place. Those that were registered before
// (by functions in its .preinit_array; by anything, where the library is loaded with dlopen) run on the PE's own data.
// Any thread may fork; one does at a time. A copy costs what has been written to, here or by peers.
#pragma once

#include "memory/static_data.h"

namespace heddle::memory {

// From now on children run this as soon as the memory is theirs. Set before init does anything that a child must not
// take for its own.
void run_in_children(void (*begin)());

// While one lives, no other thread of the process forks.
class NoForks {
  public:
    NoForks();
    ~NoForks();
    NoForks(const NoForks&) = delete;
    NoForks& operator=(const NoForks&) = delete;
};

// From now on children get a copy of the range, of which fd has the contents at file_offset. The range lives as long as
// the process. Called with NoForks.
void keep_from_children(const StaticRange* range, int fd, size_t file_offset);

}  // namespace heddle::memory
