// Standard input for every PE (--stdin all). Threads: one, which never blocks on a slow PE.
//
//     stdin -> buffer -> the pipe of each PE
//
// Invariant: no byte is read before all PEs have taken those before it, so that at most one buffer is held. A PE that
// has closed its input, or ended, takes part no longer.
#pragma once

#include <poll.h>

#include <cstddef>
#include <vector>

namespace heddle::launcher {

class Input {
  public:
    // False with errno when the kernel refuses.
    bool open();
    // pipe: the write end of a PE's input, which is closed after the last byte.
    bool add(int pipe);

    // The event to poll for before the next work().
    pollfd interest() const;
    void work();

  private:
    struct Reader {
        int pipe = -1;  // -1 when it takes no more
        size_t taken = 0;
        bool blocked = false;  // watched by epoll_
    };

    void give(Reader* reader);
    void finish(Reader* reader);
    bool is_taken() const;

    int epoll_ = -1;  // room in the pipes that are full
    bool open_ = false;
    size_t bytes_ = 0;  // in buffer_
    std::vector<char> buffer_;
    std::vector<Reader> readers_;
};

}  // namespace heddle::launcher
