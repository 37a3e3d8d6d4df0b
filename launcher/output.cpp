#include "output.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>

namespace heddle::launcher {

namespace {

constexpr size_t kReadBytes = 256 * 1024;
constexpr size_t kKeptBytes = 64 * 1024;     // after a long line a stream frees memory beyond this
constexpr uint64_t kPromptNs = 100'000'000;  // an unfinished line is shown on a terminal after this time without more
constexpr int kEventsAtOnce = 64;
// Reads a pipe of the largest size that users may set (1 MiB) many times over. Ends although a survivor writes on and
// on.
constexpr int kDrainReads = 64;

void wait_for_room(int fd) {
    pollfd room = {fd, POLLOUT, 0};
    poll(&room, 1, 100);
}

}  // namespace

bool Sink::open(int fd) {
    buffer_.resize(kReadBytes);
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    struct stat info;
    if (epoll_ < 0 || fstat(fd, &info) != 0)
        return false;
    fd_ = fd;
    terminal_ = isatty(fd);
    if (!terminal_ && !S_ISFIFO(info.st_mode) && !S_ISSOCK(info.st_mode))
        return true;
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const int own = S_ISSOCK(info.st_mode) ? -1 : ::open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    mode_ = own >= 0 ? Mode::kOwn : Mode::kCareful;
    fd_ = own >= 0 ? own : fd;
    return true;
}

bool Sink::watch(Stream* stream) {
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.ptr = stream;
    return epoll_ctl(epoll_, EPOLL_CTL_ADD, stream->fd, &event) == 0;
}

pollfd Sink::interest() const {
    if (!waiting_.empty())
        return {fd_, POLLOUT, 0};
    return {epoll_, POLLIN, 0};  // -1 for an unused sink: poll skips it
}

void Sink::work(uint64_t now_ns) {
    if (epoll_ < 0 || !flush())
        return;
    epoll_event events[kEventsAtOnce];
    const int ready = epoll_wait(epoll_, events, kEventsAtOnce, 0);
    for (int i = 0; i < ready && waiting_.empty(); ++i)  // the rest is still ready next time
        read_some(static_cast<Stream*>(events[i].data.ptr), now_ns);
}

void Sink::drain(Stream* stream, uint64_t now_ns) {
    for (int reads = 0; reads < kDrainReads && stream->fd >= 0 && flush() && read_some(stream, now_ns); ++reads) {
    }
}

// One read. False when there was nothing to read.
bool Sink::read_some(Stream* stream, uint64_t now_ns) {
    const ssize_t bytes = read(stream->fd, buffer_.data(), buffer_.size());
    if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (bytes <= 0) {
        end(stream);
        return false;
    }
    stream->last_read_ns = now_ns;
    const std::string_view text(buffer_.data(), static_cast<size_t>(bytes));
    const size_t newline = text.rfind('\n');
    if (newline == text.npos) {
        stream->unfinished.append(text);
        if (stream->unfinished.size() > kLongestLine)
            show(stream);
        return true;
    }
    forward(stream, stream->unfinished, text.substr(0, newline + 1));
    stream->unfinished.assign(text.substr(newline + 1));
    if (stream->unfinished.capacity() > kKeptBytes)
        stream->unfinished.shrink_to_fit();
    return true;
}

void Sink::end(Stream* stream) {
    show(stream);
    close(stream->fd);  // removes the descriptor from the epoll set
    stream->fd = -1;
}

void Sink::show(Stream* stream) {
    if (stream->unfinished.empty())
        return;
    forward(stream, stream->unfinished, {});
    stream->unfinished.clear();
    if (stream->unfinished.capacity() > kKeptBytes)
        stream->unfinished.shrink_to_fit();
}

void Sink::say(std::string_view line) {
    if (open_line_)
        put("\n");
    open_line_ = nullptr;
    put(line);
    put("\n");
}

// Forwards two consecutive parts of a stream; not both empty.
void Sink::forward(const Stream* from, std::string_view first, std::string_view second) {
    const bool continues = open_line_ == from;
    if (open_line_ && !continues)
        put("\n");
    const std::string_view last = second.empty() ? first : second;
    open_line_ = last.back() == '\n' ? nullptr : from;
    if (from->tag.empty()) {
        put(first);
        put(second);
        return;
    }
    bool at_start = !continues;
    scratch_.clear();
    tag_lines(from, first, &at_start);
    tag_lines(from, second, &at_start);
    put(scratch_);
}

void Sink::tag_lines(const Stream* from, std::string_view text, bool* at_start) {
    while (!text.empty()) {
        if (*at_start)
            scratch_ += from->tag;
        const size_t length = std::min(text.find('\n'), text.size() - 1) + 1;
        scratch_ += text.substr(0, length);
        *at_start = scratch_.back() == '\n';
        text.remove_prefix(length);
    }
}

// Writes what the target takes, and keeps the rest.
void Sink::put(std::string_view bytes) {
    if (waiting_.empty())
        bytes.remove_prefix(write_some(bytes));
    if (!error_)
        waiting_.append(bytes);
}

bool Sink::flush() {
    if (waiting_.empty())
        return true;
    waiting_from_ += write_some(std::string_view(waiting_).substr(waiting_from_));
    if (waiting_from_ != waiting_.size() && !error_)
        return false;
    waiting_.clear();
    waiting_from_ = 0;
    return true;
}

// The number of bytes that the target took, or that were dropped because it failed.
size_t Sink::write_some(std::string_view bytes) {
    size_t done = 0;
    while (done < bytes.size() && !error_) {
        size_t most = bytes.size() - done;
        if (mode_ == Mode::kCareful) {
            pollfd room = {fd_, POLLOUT, 0};
            if (poll(&room, 1, 0) <= 0)
                return done;
            most = std::min<size_t>(most, PIPE_BUF);
        }
        const ssize_t written = write(fd_, bytes.data() + done, most);
        if (written >= 0)
            done += static_cast<size_t>(written);
        else if (errno == EAGAIN && mode_ != Mode::kDirect)
            return done;
        else if (errno == EAGAIN)
            wait_for_room(fd_);
        else if (errno != EINTR)
            error_ = errno;
    }
    return bytes.size();
}

bool Output::open(int pes, bool tag) {
    streams_.resize(static_cast<size_t>(pes) * 2);
    for (size_t i = 0; tag && i < streams_.size(); ++i) streams_[i].tag = "[" + std::to_string(i / 2) + "] ";
    if (!sinks_[0].open(STDOUT_FILENO))
        return false;
    struct stat out, err;
    if (fstat(STDOUT_FILENO, &out) != 0 || fstat(STDERR_FILENO, &err) != 0)
        return false;
    if (sinks_[0].may_block() && out.st_dev == err.st_dev && out.st_ino == err.st_ino) {
        errors_ = &sinks_[0];  // a line of one stream must not begin within a line of the other
        return true;
    }
    return sinks_[1].open(STDERR_FILENO);
}

bool Output::add(int pe, int output_fd, int error_fd) {
    const size_t first = static_cast<size_t>(pe) * 2;
    streams_[first].fd = output_fd;
    streams_[first + 1].fd = error_fd;
    fcntl(output_fd, F_SETFL, O_NONBLOCK);
    fcntl(error_fd, F_SETFL, O_NONBLOCK);
    return sink_of(first)->watch(&streams_[first]) && sink_of(first + 1)->watch(&streams_[first + 1]);
}

void Output::interests(pollfd* two) const {
    two[0] = sinks_[0].interest();
    two[1] = sinks_[1].interest();
}

void Output::work(uint64_t now_ns) {
    sinks_[0].work(now_ns);
    sinks_[1].work(now_ns);
    for (size_t i = 0; i < streams_.size(); ++i) {
        Stream* stream = &streams_[i];
        if (!stream->unfinished.empty() && sink_of(i)->terminal() && now_ns >= stream->last_read_ns + kPromptNs)
            sink_of(i)->show(stream);
    }
}

uint64_t Output::next_due_ns() const {
    uint64_t due = UINT64_MAX;
    if (!sinks_[0].terminal() && !errors_->terminal())
        return due;
    for (size_t i = 0; i < streams_.size(); ++i) {
        if (!streams_[i].unfinished.empty() && (i % 2 ? errors_ : &sinks_[0])->terminal())
            due = std::min(due, streams_[i].last_read_ns + kPromptNs);
    }
    return due;
}

void Output::drain(int pe, uint64_t now_ns) {
    for (size_t i = static_cast<size_t>(pe) * 2; i < static_cast<size_t>(pe) * 2 + 2; ++i)
        sink_of(i)->drain(&streams_[i], now_ns);
}

bool Output::drain_all(uint64_t now_ns) {
    bool done = sinks_[0].flush();
    done = sinks_[1].flush() && done;
    for (size_t i = 0; i < streams_.size(); ++i) {
        sink_of(i)->drain(&streams_[i], now_ns);
        if (sink_of(i)->flush())
            sink_of(i)->show(&streams_[i]);  // a surviving writer keeps the stream open
        done = sink_of(i)->flush() && done;
    }
    return done;
}

}  // namespace heddle::launcher
