#include "os/own_descriptor.h"

#include "os/locked.h"

#include <pthread.h>
#include <unistd.h>

namespace heddle::os {

namespace {

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // of the list, and held during a fork
pthread_once_t is_prepared = PTHREAD_ONCE_INIT;
OwnDescriptor* first = nullptr;

}  // namespace

void OwnDescriptor::close_in_child() {
    for (OwnDescriptor* it = first; it; it = it->next_) {
        // The program may have closed the descriptor, and use its number for a file of its own.
        if (identify(it->fd_) == it->file_)
            ::close(it->fd_);
        it->fd_ = -1;
    }
    first = nullptr;
    pthread_mutex_unlock(&lock);
}

void OwnDescriptor::take(int fd) {
    close();
    if (fd < 0)
        return;
    pthread_once(&is_prepared, [] {
        pthread_atfork([] { pthread_mutex_lock(&lock); }, [] { pthread_mutex_unlock(&lock); }, close_in_child);
    });
    const Locked locked(lock);
    fd_ = fd;
    file_ = identify(fd);
    next_ = first;
    before_ = nullptr;
    if (first)
        first->before_ = this;
    first = this;
}

void OwnDescriptor::close() {
    const Locked locked(lock);
    if (fd_ < 0)
        return;
    (before_ ? before_->next_ : first) = next_;
    if (next_)
        next_->before_ = before_;
    ::close(fd_);
    fd_ = -1;
}

}  // namespace heddle::os
