#include "os/descriptor_passing.h"

#include "os/clock.h"
#include "os/own_thread.h"
#include "os/process.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>

namespace heddle::os {

namespace {

constexpr int kKind = SOCK_SEQPACKET | SOCK_CLOEXEC;  // a message arrives whole

struct Address {
    sockaddr_un name = {};
    socklen_t bytes = 0;
    const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
};

Address address_of(uint64_t name) {
    Address address;
    address.name.sun_family = AF_UNIX;
    // The zero byte in front makes the name abstract: it belongs to no file, and goes with the socket.
    const int length = snprintf(address.name.sun_path + 1, sizeof address.name.sun_path - 1, "heddle-%016llx",
                                static_cast<unsigned long long>(name));
    address.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<size_t>(length));
    return address;
}

// A message of one byte, with room for one descriptor.
struct Message {
    char byte = 0;
    iovec part = {&byte, 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr header = {};
    Message() {
        header.msg_iov = &part;
        header.msg_iovlen = 1;
        header.msg_control = control;
        header.msg_controllen = sizeof control;
    }
};

bool send_descriptor(int to, int fd) {
    Message it;
    cmsghdr* const header = CMSG_FIRSTHDR(&it.header);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    return sendmsg(to, &it.header, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

// The descriptor that arrives; -ECONNRESET when the server closes, or another negative errno.
int receive_descriptor(int from) {
    Message it;
    const ssize_t got = recvmsg(from, &it.header, MSG_CMSG_CLOEXEC);
    if (got < 0)
        return -errno;
    if (it.header.msg_flags & MSG_CTRUNC)  // the message has come without its file
        return -EMFILE;
    const cmsghdr* const header = CMSG_FIRSTHDR(&it.header);
    if (got == 0 || !header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS ||
        header->cmsg_len != CMSG_LEN(sizeof(int)))
        return -ECONNRESET;
    int fd = -1;
    memcpy(&fd, CMSG_DATA(header), sizeof fd);
    return fd;
}

int ask(int connection, const Address& address, uint64_t secret, uint64_t timeout_ns) {
    // A timeout of zero would be none.
    const timeval timeout = {static_cast<time_t>(timeout_ns / 1000000000),
                             static_cast<suseconds_t>(timeout_ns % 1000000000 / 1000) + 1};
    setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);  // of connect, too
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    if (connect(connection, address.get(), address.bytes) != 0)
        return -errno;
    if (send(connection, &secret, sizeof secret, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof secret))
        return errno == EPIPE ? -ECONNRESET : -errno;
    return receive_descriptor(connection);
}

}  // namespace

int DescriptorServer::start(int fd, DescriptorOffer* offer) {
    stop();
    listener_ = socket(AF_UNIX, kKind | SOCK_NONBLOCK, 0);
    if (listener_ < 0)
        return -errno;
    *offer = {random_word(), random_word()};
    fd_ = fd;
    secret_ = offer->secret;
    const Address address = address_of(offer->name);
    int error = bind(listener_, address.get(), address.bytes) != 0 || listen(listener_, SOMAXCONN) != 0 ? errno : 0;
    if (error == 0)
        error = start_own_thread(&thread_, run, this);
    if (error != 0) {
        close(listener_);
        listener_ = -1;
    }
    return -error;
}

void DescriptorServer::stop() {
    if (listener_ < 0)
        return;
    shutdown(listener_, SHUT_RDWR);  // ends serve, and refuses connections even if a forked child has the socket
    pthread_join(thread_, nullptr);
    close(listener_);
    listener_ = -1;
}

void* DescriptorServer::run(void* self) {
    static_cast<DescriptorServer*>(self)->serve();
    return nullptr;
}

void DescriptorServer::serve() {
    pollfd its[1 + kMostGuests] = {{listener_, POLLIN, 0}};
    int n = 1;
    while (true) {
        if (poll(its, static_cast<nfds_t>(n), -1) < 0)
            continue;  // EINTR, or no memory for a moment
        if (its[0].revents & POLLHUP)
            break;
        n = static_cast<int>(std::remove_if(its + 1, its + n,
                                            [this](const pollfd& it) {
                                                const bool done = it.revents != 0 && answer(it.fd);
                                                if (done)
                                                    close(it.fd);
                                                return done;
                                            }) -
                             its);
        if (!(its[0].revents & POLLIN))
            continue;
        const int guest = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
        if (guest < 0) {
            sleep_ns(kMillisecondNs);  // out of descriptors, for one
            continue;
        }
        if (n == 1 + kMostGuests) {
            close(its[1].fd);  // the oldest
            std::move(its + 2, its + n, its + 1);
            --n;
        }
        its[n++] = {guest, POLLIN, 0};
    }
    for (int i = 1; i < n; ++i) close(its[i].fd);
}

// Reads from a connection, and gives the file to one that knows the secret. True when the connection is to be closed.
bool DescriptorServer::answer(int guest) const {
    uint64_t said = 0;
    const ssize_t bytes = recv(guest, &said, sizeof said, MSG_DONTWAIT);
    if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (bytes == static_cast<ssize_t>(sizeof said) && said == secret_)
        send_descriptor(guest, fd_);
    return true;
}

int fetch_descriptor(const DescriptorOffer& offer, uint64_t timeout_ns) {
    const Address address = address_of(offer.name);
    for (const uint64_t end_ns = now_ns() + timeout_ns;;) {
        const uint64_t at_ns = now_ns();
        if (at_ns >= end_ns)
            return -ETIMEDOUT;
        const int connection = socket(AF_UNIX, kKind, 0);
        if (connection < 0)
            return -errno;
        const int fd = ask(connection, address, offer.secret, end_ns - at_ns);
        close(connection);
        // Turned away for newer connections, interrupted, or out of time.
        if (fd != -ECONNRESET && fd != -EINTR && fd != -EAGAIN)
            return fd;
        sleep_ns(kMillisecondNs);
    }
}

}  // namespace heddle::os
