#include "bootstrap/rendezvous/connection.h"

#include "bootstrap/pmi/pmi.h"
#include "os/clock.h"

#include <poll.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace heddle::bootstrap::rendezvous {

namespace {

constexpr uint64_t kConnectNs = 2 * kSecondNs;  // for one address: a firewall may swallow what goes there
constexpr uint64_t kAgainNs = kSecondNs / 20;   // between rounds of attempts

JoinRequest request_of(const Target& target) {
    JoinRequest mine = {};
    mine.token = target.place.token;
    mine.host = pmi::identify_host();
    mine.pe = target.pe;
    mine.n_pes = target.n_pes;
    mine.pid = getpid();
    mine.process = process_word();
    gethostname(mine.host_name, sizeof mine.host_name - 1);
    return mine;
}

// A connection to a port where nobody listens may have that port at both ends.
bool is_to_itself(int fd) {
    Endpoint here, there;
    here.bytes = sizeof here.address;
    there.bytes = sizeof there.address;
    return getsockname(fd, reinterpret_cast<sockaddr*>(&here.address), &here.bytes) == 0 &&
           getpeername(fd, reinterpret_cast<sockaddr*>(&there.address), &there.bytes) == 0 &&
           here.text() == there.text();
}

}  // namespace

void Connection::close() {
    fd_.close();
    inbox_ = {};
    where_.clear();
}

bool Connection::connect(const Endpoint& endpoint, uint64_t deadline_ns, const Reason& reason) {
    fd_.take([&] { return socket(endpoint.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); });
    const int fd = fd_;
    if (fd < 0)
        return reason.fail("%s", strerror(errno));
    int error = 0;
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&endpoint.address), endpoint.bytes) != 0) {
        error = errno;
        if (error == EINPROGRESS) {
            pollfd it = {fd, POLLOUT, 0};
            do poll(&it, 1, 100);
            while (it.revents == 0 && os::now_ns() < deadline_ns);
            socklen_t bytes = sizeof error;
            error = ETIMEDOUT;
            if (it.revents != 0)
                getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes);
        }
    }
    if (error == 0 && is_to_itself(fd)) {
        const linger at_once = {1, 0};  // no time in which the port is taken
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        error = ECONNREFUSED;
    }
    if (error != 0)
        return reason.fail("%s", strerror(error));
    watch_connection(fd);
    return true;
}

bool Connection::send(std::string_view bytes, uint64_t deadline_ns) const {
    while (!bytes.empty()) {
        const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0) {
            bytes.remove_prefix(static_cast<size_t>(sent));
            continue;
        }
        if ((errno != EAGAIN && errno != EINTR) || os::now_ns() >= deadline_ns)
            return false;
        pollfd it = {fd_, POLLOUT, 0};
        poll(&it, 1, 100);
    }
    return true;
}

bool Connection::receive(uint64_t deadline_ns, Message* message, const Reason& reason) {
    for (;;) {
        const Inbox::State state = inbox_.next(kMaxAnswerBytes, message);
        if (state == Inbox::State::kWhole)
            return true;
        if (state == Inbox::State::kBroken)
            return reason.fail("another program listens there");
        const uint64_t now = os::now_ns();
        if (now >= deadline_ns)
            return reason.fail("no answer");
        pollfd it = {fd_, POLLIN, 0};
        if (poll(&it, 1, static_cast<int>(std::min((deadline_ns - now) / 1000000 + 1, uint64_t{1000}))) <= 0)
            continue;
        char bytes[16384];
        const ssize_t got = recv(fd_, bytes, sizeof bytes, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
            return reason.fail("the connection has ended (%s)", got == 0 ? "closed there" : strerror(errno));
        inbox_.append(bytes, static_cast<size_t>(std::max<ssize_t>(got, 0)));
    }
}

// Asks one endpoint. *is_refused: a server has answered, and does not take this PE.
bool Connection::ask(const Target& target, const Endpoint& endpoint, uint64_t deadline_ns, bool* is_refused,
                     const Reason& reason) {
    const uint64_t now = os::now_ns();
    Message message;
    std::string bytes;
    append_message(&bytes, Kind::kJoin, bytes_of(request_of(target)));
    if (connect(endpoint, std::min(deadline_ns, now + kConnectNs), reason) &&
        (send(bytes, deadline_ns) || reason.fail("the connection has ended")) &&
        receive(std::min(deadline_ns, now + kAnswerNs), &message, reason)) {
        if (message.kind == Kind::kWaiting)
            return true;
        *is_refused = message.kind == Kind::kRefused;
        reason.fail("%s", *is_refused ? printable(message.payload).c_str() : "another program listens there");
    }
    close();
    return false;
}

bool Connection::find_server(const Target& target, uint64_t deadline_ns, const Reason& reason) {
    bool is_refused = false;
    for (;;) {
        std::vector<Endpoint> endpoints = target.place.endpoints;
        if (!target.host.empty())
            resolve(target.host, target.port, &endpoints, reason);
        for (const Endpoint& endpoint : endpoints) {
            if (!ask(target, endpoint, deadline_ns, &is_refused, reason))
                continue;
            where_ = endpoint.text();
            return true;
        }
        if (is_refused)
            return false;
        if (os::now_ns() >= deadline_ns)
            break;
        os::sleep_ns(kAgainNs);
    }
    const std::string last = reason.text;
    return reason.fail("not found within %llu s (HEDDLE_LAUNCH_TIMEOUT_S): %s; right would be %s, which listens there",
                       static_cast<unsigned long long>(target.timeout_s), last.c_str(),
                       target.host.empty() ? "the process that made the id" : "PE 0 (RANK=0) on that host");
}

bool Connection::wait_for_all(const Target& target, uint64_t deadline_ns, std::vector<uint64_t>* hosts,
                              const Reason& reason) {
    Message message;
    if (!receive(deadline_ns, &message, reason))
        return false;
    const size_t n_pes = static_cast<size_t>(target.n_pes);
    if (message.kind == Kind::kStart && message.payload.size() == n_pes * sizeof(uint64_t)) {
        hosts->resize(n_pes);
        memcpy(hosts->data(), message.payload.data(), message.payload.size());
        return true;
    }
    if (message.kind == Kind::kRefused)
        return reason.fail("%s", printable(message.payload).c_str());
    if (message.kind == Kind::kEnd && message.payload.size() >= sizeof(int32_t))
        return reason.fail("%s", printable(message.payload.substr(sizeof(int32_t))).c_str());
    if (message.kind == Kind::kParted)
        return reason.fail("the process that serves the job has ended");
    return reason.fail("the server's answer is none of this version of Heddle");
}

}  // namespace heddle::bootstrap::rendezvous
