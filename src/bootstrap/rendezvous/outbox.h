// Outbox of a connection: messages that wait to be sent. Messages for many connections are kept once, in bytes that
// all their outboxes share. Threads: those of its owner.
#pragma once

#include "bootstrap/rendezvous/message.h"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::bootstrap::rendezvous {

using SharedMessage = std::shared_ptr<const std::string>;
SharedMessage share_message(Kind kind, std::string_view payload);

class Outbox {
  public:
    void add(Kind kind, std::string_view payload = {}) { add(share_message(kind, payload)); }
    void add(SharedMessage message);
    bool empty() const { return messages_.empty(); }
    // Sends what the socket takes at once. False, with errno, when the connection has ended.
    bool send_to(int fd);

  private:
    std::vector<SharedMessage> messages_;
    size_t sent_ = 0;  // of the first message, in bytes
};

}  // namespace heddle::bootstrap::rendezvous
