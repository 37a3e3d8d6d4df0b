#include "bootstrap/rendezvous/outbox.h"

#include <sys/socket.h>
#include <cerrno>
#include <utility>

namespace heddle::bootstrap::rendezvous {

SharedMessage share_message(Kind kind, std::string_view payload) {
    std::string bytes;
    bytes.reserve(sizeof(Header) + payload.size());
    append_message(&bytes, kind, payload);
    return std::make_shared<const std::string>(std::move(bytes));
}

void Outbox::add(SharedMessage message) {
    messages_.push_back(std::move(message));
}

bool Outbox::send_to(int fd) {
    while (!messages_.empty()) {
        const std::string& first = *messages_.front();
        const ssize_t sent = send(fd, first.data() + sent_, first.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0)
            return errno == EAGAIN || errno == EINTR;
        sent_ += static_cast<size_t>(sent);
        if (sent_ < first.size())
            return true;
        messages_.erase(messages_.begin());
        sent_ = 0;
    }
    return true;
}

}  // namespace heddle::bootstrap::rendezvous
