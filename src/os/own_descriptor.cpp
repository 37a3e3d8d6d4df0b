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

// With the lock held, as leave.
void OwnDescriptor::enter(int fd, FileId file) {
    fd_ = fd;
    file_ = file;
    next_ = first;
    before_ = nullptr;
    if (first)
        first->before_ = this;
    first = this;
}

void OwnDescriptor::leave() {
    (before_ ? before_->next_ : first) = next_;
    if (next_)
        next_->before_ = before_;
    fd_ = -1;
}

void OwnDescriptor::take_result(int (*open)(const void*), const void* argument) {
    close();
    pthread_once(&is_prepared, [] {
        pthread_atfork([] { pthread_mutex_lock(&lock); }, [] { pthread_mutex_unlock(&lock); }, close_in_child);
    });
    const Locked locked(lock);
    if (const int fd = open(argument); fd >= 0)
        enter(fd, identify(fd));
}

void OwnDescriptor::take(OwnDescriptor& other) {
    close();
    const Locked locked(lock);
    if (other.fd_ < 0)
        return;
    const int fd = other.fd_;
    other.leave();
    enter(fd, other.file_);
}

void OwnDescriptor::close() {
    const Locked locked(lock);
    if (fd_ < 0)
        return;
    const int fd = fd_;
    leave();
    ::close(fd);
}

}  // namespace heddle::os
