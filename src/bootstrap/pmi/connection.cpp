#include "bootstrap/pmi/connection.h"

#include "os/clock.h"
#include "os/locked.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace heddle::bootstrap::pmi {

namespace {

constexpr uint64_t kNever = UINT64_MAX;

// Text of the process manager for a message: short, and without control characters.
struct Shown {
    char text[65];
    explicit Shown(std::string_view from) {
        const size_t length = std::min(from.size(), sizeof text - 1);
        for (size_t i = 0; i < length; ++i) text[i] = from[i] >= ' ' && from[i] < 127 ? from[i] : '?';
        text[length] = '\0';
    }
};

}  // namespace

bool Connection::open(int fd, uint64_t timeout_s, const Reason& reason) {
    fd_ = fd;
    timeout_s_ = timeout_s;
    return fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 ||  // programs that a PE starts are no PEs
           reason.fail("PMI_FD=%d: %s", fd, strerror(errno));
}

bool Connection::connect(const char* host_and_port, uint64_t timeout_s, const Reason& reason) {
    const char* const colon = strrchr(host_and_port, ':');
    char host[256];
    if (!colon || colon == host_and_port || static_cast<size_t>(colon - host_and_port) >= sizeof host)
        return reason.fail("PMI_PORT=%s is malformed: right would be HOST:PORT", host_and_port);
    snprintf(host, sizeof host, "%.*s", static_cast<int>(colon - host_and_port), host_and_port);
    addrinfo hints = {};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (const int status = getaddrinfo(host, colon + 1, &hints, &found); status != 0)
        return reason.fail("PMI_PORT=%s: %s", host_and_port, gai_strerror(status));
    int fd = -1;
    int error = 0;
    for (const addrinfo* it = found; it && fd < 0; it = it->ai_next) {
        fd = socket(it->ai_family, it->ai_socktype | SOCK_CLOEXEC, it->ai_protocol);
        const timeval limit = {static_cast<time_t>(timeout_s), 0};
        if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0 &&
            ::connect(fd, it->ai_addr, it->ai_addrlen) == 0)
            break;
        error = errno;
        if (fd >= 0)
            ::close(fd);
        fd = -1;
    }
    freeaddrinfo(found);
    if (fd < 0)
        return reason.fail("PMI_PORT=%s: %s", host_and_port, strerror(error));
    return open(fd, timeout_s, reason);
}

void Connection::close() {
    if (fd_ >= 0)
        ::close(fd_);
    fd_ = -1;
}

uint64_t Connection::deadline() const {
    return os::now_ns() + timeout_s_ * 1000000000;
}

bool Connection::wait(short events, uint64_t deadline_ns, const Reason& reason) {
    for (;;) {
        const uint64_t now = os::now_ns();
        if (now >= deadline_ns)
            return reason.fail("no answer within %llu s (HEDDLE_LAUNCH_TIMEOUT_S)",
                               static_cast<unsigned long long>(timeout_s_));
        pollfd it = {fd_, events, 0};
        const uint64_t left_ms = deadline_ns == kNever ? 1000 : (deadline_ns - now) / 1000000 + 1;
        const int status = poll(&it, 1, static_cast<int>(std::min<uint64_t>(left_ms, 1000)));
        if (status > 0)
            return true;
        if (status < 0 && errno != EINTR)
            return reason.fail("poll: %s", strerror(errno));
    }
}

bool Connection::send(Request& request, uint64_t deadline_ns, const Reason& reason) {
    std::string_view left = request.finish();
    if (left.empty())
        return reason.fail("a message is longer than %zu bytes", kMaxMessageBytes);
    while (!left.empty()) {
        const ssize_t sent = ::send(fd_, left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0)
            left.remove_prefix(static_cast<size_t>(sent));
        else if (errno != EAGAIN && errno != EINTR)
            return reason.fail("it has closed the connection (%s)", strerror(errno));
        else if (!wait(POLLOUT, deadline_ns, reason))
            return false;
    }
    return true;
}

// Waits until buffer_ has that many bytes, or has grown (bytes 0).
bool Connection::fill(size_t bytes, uint64_t deadline_ns, const Reason& reason) {
    const size_t wanted = bytes == 0 ? used_ + 1 : bytes;
    while (used_ < wanted) {
        if (used_ == sizeof buffer_)
            return reason.fail("a message is longer than %zu bytes", sizeof buffer_);
        const ssize_t got = recv(fd_, buffer_ + used_, sizeof buffer_ - used_, MSG_DONTWAIT);
        if (got > 0)
            used_ += static_cast<size_t>(got);
        else if (got == 0 || (errno != EAGAIN && errno != EINTR))
            return reason.fail("it has closed the connection");
        else if (!wait(POLLIN, deadline_ns, reason))
            return false;
    }
    return true;
}

void Connection::consume(size_t bytes) {
    used_ -= bytes;
    memmove(buffer_, buffer_ + bytes, used_);
}

bool Connection::receive_any(Answer* answer, uint64_t deadline_ns, const Reason& reason) {
    size_t begin = 0, end = 0, after = 0;
    if (version_ == Version::k1) {
        const void* newline = nullptr;
        while (!(newline = memchr(buffer_, '\n', used_)))
            if (!fill(0, deadline_ns, reason))
                return false;
        end = static_cast<size_t>(static_cast<const char*>(newline) - buffer_);
        after = end + 1;
    } else {
        char length[kLengthBytes];
        if (!fill(sizeof length, deadline_ns, reason))
            return false;
        memcpy(length, buffer_, sizeof length);
        begin = sizeof length;
        end = after = begin + parse_length(length);
        if (end == begin || end > sizeof buffer_)
            return reason.fail("a message begins with '%s', which is no length", Shown({length, sizeof length}).text);
        if (!fill(end, deadline_ns, reason))
            return false;
    }
    const std::string_view text(buffer_ + begin, end - begin);
    if (!answer->parse(version_, text))
        return reason.fail("'%s' is no message of PMI-%d", Shown(text).text, static_cast<int>(version_));
    consume(after);
    return true;
}

bool Connection::receive_answer(const char* expected, Answer* answer, const Reason& reason) {
    const uint64_t deadline_ns = deadline();
    for (;;) {
        if (!receive_any(answer, deadline_ns, reason))
            return false;
        if (barrier_ && answer->command() == barrier_ && !is_barrier_passed_)
            is_barrier_passed_ = true;
        else
            break;
    }
    if (answer->command() != expected)
        return reason.fail("the answer is '%s': right would be '%s'", Shown(answer->command()).text, expected);
    long failure = 0;
    if (answer->find("rc").empty() || (answer->find_number("rc", 0, 0, &failure)))
        return true;
    const std::string_view words = answer->find("msg").empty() ? answer->find("errmsg") : answer->find("msg");
    return reason.fail("%s has failed: rc=%s %s", expected, Shown(answer->find("rc")).text, Shown(words).text);
}

bool Connection::exchange(Request& request, const char* expected, Answer* answer, const Reason& reason) {
    const os::Locked lock(mutex_);
    return send(request, deadline(), reason) && receive_answer(expected, answer, reason);
}

bool Connection::receive(const char* expected, Answer* answer, const Reason& reason) {
    const os::Locked lock(mutex_);
    return receive_answer(expected, answer, reason);
}

bool Connection::pass_barrier(Request& request, const char* expected, bool has_deadline, const Reason& reason) {
    const uint64_t deadline_ns = has_deadline ? deadline() : kNever;
    {
        const os::Locked lock(mutex_);
        barrier_ = expected;
        is_barrier_passed_ = false;
        if (!send(request, deadline_ns, reason))
            return false;
    }
    for (;;) {
        {
            const os::Locked lock(mutex_);
            Answer answer;
            pollfd it = {fd_, POLLIN, 0};
            // No other thread's answer is outstanding while this thread has the lock: what comes is the barrier's.
            if (!is_barrier_passed_ && (used_ > 0 || poll(&it, 1, 0) > 0)) {
                barrier_ = nullptr;
                return receive_answer(expected, &answer, reason);
            }
            if (is_barrier_passed_) {
                barrier_ = nullptr;
                return true;
            }
        }
        pollfd it = {fd_, POLLIN, 0};
        poll(&it, 1, kPollMs);
        if (os::now_ns() >= deadline_ns)
            return reason.fail(
                "not all PEs have come within %llu s (HEDDLE_LAUNCH_TIMEOUT_S): has each called "
                "shmem_init?",
                static_cast<unsigned long long>(timeout_s_));
    }
}

void Connection::send_last(Request& request) {
    timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 1;
    const bool is_locked = pthread_mutex_timedlock(&mutex_, &limit) == 0;
    char text[128];
    send(request, os::now_ns() + 1000000000, {text, sizeof text});
    if (is_locked)
        pthread_mutex_unlock(&mutex_);
}

}  // namespace heddle::bootstrap::pmi
