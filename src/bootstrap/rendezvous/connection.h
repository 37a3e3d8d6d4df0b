// Connection of a PE to the server of its rendezvous: found as soon as it listens, then joined. Threads: one at a time,
// but send and the inbox may be used by two.
#pragma once

#include "bootstrap/reason.h"
#include "bootstrap/rendezvous/message.h"
#include "bootstrap/rendezvous/unique_id.h"
#include "os/own_descriptor.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::bootstrap::rendezvous {

constexpr uint64_t kAnswerNs = 5 * kSecondNs;  // to kJoin; a server's own deadlines come this much earlier

// The job that a PE is to join, and how to find it.
struct Target {
    int pe = 0;
    int n_pes = 0;
    uint64_t timeout_s = 0;  // for messages
    Place place;
    std::string host, port;  // resolved again and again in place of the place's endpoints; empty: those
};

class Connection {
  public:
    // Asks every endpoint in turn, until a server lets this PE join. False, with the reason, when one refuses it, or
    // none is there in time.
    bool find_server(const Target& target, uint64_t deadline_ns, const Reason& reason);
    // Waits until all PEs have joined. *hosts: the hash of each PE's host.
    bool wait_for_all(const Target& target, uint64_t deadline_ns, std::vector<uint64_t>* hosts, const Reason& reason);
    // Sends all bytes; false when the connection has ended, or does not take them in time.
    bool send(std::string_view bytes, uint64_t deadline_ns) const;
    void close();

    int fd() const { return fd_; }
    Inbox& inbox() { return inbox_; }
    // The server's address, for messages; empty: not connected.
    const std::string& where() const { return where_; }

  private:
    bool connect(const Endpoint& endpoint, uint64_t deadline_ns, const Reason& reason);
    bool ask(const Target& target, const Endpoint& endpoint, uint64_t deadline_ns, bool* is_refused,
             const Reason& reason);
    bool receive(uint64_t deadline_ns, Message* message, const Reason& reason);

    os::OwnDescriptor fd_;
    Inbox inbox_;
    std::string where_;
};

}  // namespace heddle::bootstrap::rendezvous
