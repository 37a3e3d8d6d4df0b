// Descriptors that the library keeps for this process alone: a forked child closes its copies at once. The end of this
// process then ends a connection, and a port that this process closes is closed. Threads: any; an OwnDescriptor has
// one at a time, and fork may be called at any time.
#pragma once

#include "os/mappings.h"

namespace heddle::os {

class OwnDescriptor {
  public:
    OwnDescriptor() = default;
    explicit OwnDescriptor(int fd) { take(fd); }
    ~OwnDescriptor() { close(); }
    OwnDescriptor(const OwnDescriptor&) = delete;
    OwnDescriptor& operator=(const OwnDescriptor&) = delete;

    // From now on fd is closed by this object. Closes the one before.
    void take(int fd);
    void close();
    operator int() const { return fd_; }  // -1: none, which is also the value in a forked child

  private:
    static void close_in_child();

    int fd_ = -1;
    FileId file_;
    OwnDescriptor *next_ = nullptr, *before_ = nullptr;  // of all that are open
};

}  // namespace heddle::os
