// Objects: what a position of the symmetric memory belongs to, for reports: a block of the heap, with the call that has
// allocated it, or a variable. Threads: any; a lock.
#pragma once

#include "base/call.h"

#include <pthread.h>
#include <cstddef>
#include <map>
#include <string>

namespace heddle::checking::races {

// Where static data begins among the positions: behind the heap.
size_t data_position();

class Objects {
  public:
    void allocate(size_t position, size_t bytes, const base::CallText& origin);
    // Returns the bytes of the block; 0: there is none.
    size_t free(size_t position);
    // "from byte 8 of the 64 of shmem_malloc (called at prog+0x1234)".
    std::string describe(size_t position) const;

  private:
    struct Block {
        size_t bytes;
        base::CallText origin;
    };

    mutable pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
    std::map<size_t, Block> blocks_;  // by position
};

}  // namespace heddle::checking::races
