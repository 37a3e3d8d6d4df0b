#include "input.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace heddle::launcher {

namespace {

constexpr size_t kPipeBytes = 64 * 1024;  // what a pipe holds by default

}  // namespace

bool Input::open() {
    buffer_.resize(kPipeBytes);
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    open_ = epoll_ >= 0;
    return open_;
}

bool Input::add(int pipe) {
    readers_.push_back({pipe, 0, false});
    epoll_event event = {};
    event.data.u64 = readers_.size() - 1;
    return fcntl(pipe, F_SETFL, O_NONBLOCK) == 0 && epoll_ctl(epoll_, EPOLL_CTL_ADD, pipe, &event) == 0;
}

pollfd Input::interest() const {
    if (!open_ || readers_.empty())
        return {-1, 0, 0};
    return is_taken() ? pollfd{STDIN_FILENO, POLLIN, 0} : pollfd{epoll_, POLLIN, 0};
}

void Input::work() {
    if (!open_ || readers_.empty())
        return;
    if (is_taken()) {
        pollfd ready = {STDIN_FILENO, POLLIN, 0};
        if (poll(&ready, 1, 0) <= 0)
            return;
        const ssize_t bytes = read(STDIN_FILENO, buffer_.data(), buffer_.size());
        if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (bytes <= 0) {
            for (Reader& reader : readers_) finish(&reader);
            open_ = false;
            return;
        }
        bytes_ = static_cast<size_t>(bytes);
        for (Reader& reader : readers_) reader.taken = 0;
    }
    for (Reader& reader : readers_) give(&reader);
    open_ = std::any_of(readers_.begin(), readers_.end(), [](const Reader& reader) { return reader.pipe >= 0; });
}

void Input::give(Reader* reader) {
    while (reader->pipe >= 0 && reader->taken < bytes_) {
        const ssize_t bytes = write(reader->pipe, buffer_.data() + reader->taken, bytes_ - reader->taken);
        if (bytes >= 0) {
            reader->taken += static_cast<size_t>(bytes);
        } else if (errno == EAGAIN) {
            break;
        } else if (errno != EINTR) {
            finish(reader);
            return;
        }
    }
    const bool blocked = reader->pipe >= 0 && reader->taken < bytes_;
    if (blocked == reader->blocked)
        return;
    epoll_event event = {};
    event.events = blocked ? EPOLLOUT : 0u;
    event.data.u64 = static_cast<size_t>(reader - readers_.data());
    epoll_ctl(epoll_, EPOLL_CTL_MOD, reader->pipe, &event);
    reader->blocked = blocked;
}

void Input::finish(Reader* reader) {
    if (reader->pipe >= 0)
        close(reader->pipe);
    reader->pipe = -1;
}

bool Input::is_taken() const {
    return std::all_of(readers_.begin(), readers_.end(),
                       [this](const Reader& reader) { return reader.pipe < 0 || reader.taken == bytes_; });
}

}  // namespace heddle::launcher
