// Descriptors that the library keeps for this process alone: a forked child closes its copies at once. The end of this
// process then ends a connection, and a port that this process closes is closed. Threads: any; an OwnDescriptor has
// one at a time, and fork may be called at any time.
#pragma once

#include "os/mappings.h"

namespace heddle::os {

class OwnDescriptor {
  public:
    OwnDescriptor() = default;
    ~OwnDescriptor() { close(); }
    OwnDescriptor(const OwnDescriptor&) = delete;
    OwnDescriptor& operator=(const OwnDescriptor&) = delete;

    // Closes the descriptor before, and takes the one that open returns, or -1. A fork waits for open, so that no child
    // has a descriptor that is not listed yet. open must neither block nor use an OwnDescriptor.
    template <class Open>
    void take(const Open& open) {
        take_result([](const void* it) { return (*static_cast<const Open*>(it))(); }, &open);
    }
    // Takes the other's descriptor over.
    void take(OwnDescriptor& other);
    void close();
    operator int() const { return fd_; }  // -1: none, which is also the value in a forked child

  private:
    void take_result(int (*open)(const void*), const void* argument);
    void enter(int fd, FileId file);
    void leave();
    static void close_in_child();

    int fd_ = -1;
    FileId file_;
    OwnDescriptor *next_ = nullptr, *before_ = nullptr;  // of all that are open
};

}  // namespace heddle::os
