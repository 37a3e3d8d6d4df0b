// Server of a rendezvous: brings the PEs of one job together, each by one TCP connection. Key-value exchange, fences,
// the end of the job for all when one PE ends it or dies.
//
// Until all PEs are there, the port is open, and any process may connect. A message refuses one without the job's
// token, with a number that another PE has, or with another number of PEs than PE 0. It changes nothing for the others.
// From the first PE on the others have timeout_s to come; then the job ends by a message that names those that are
// missing. When all are there, the port is closed. A PE that ends without kLeave from then on ends the job.
//
// The server is a thread of the process that made it, in PE 0 or a process that is no PE. Cost: a descriptor for each
// PE; no wake-up while nothing comes. Threads: start and stop by any thread; all else is the server's own.
#pragma once

#include "bootstrap/reason.h"
#include "bootstrap/rendezvous/message.h"
#include "bootstrap/rendezvous/outbox.h"
#include "os/own_descriptor.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace heddle::bootstrap::rendezvous {

class Server {
  public:
    // Takes the listening socket over, and serves the job of that token. n_pes 0: what PE 0 says is right. Null with
    // the reason; the socket is closed then. The server stays as long as the process.
    static Server* start(os::OwnDescriptor* listener, uint64_t token, int n_pes, uint64_t timeout_s,
                         const Reason& reason);
    // The server of this process with the token; null: none.
    static Server* find(uint64_t token);
    // Servers of this process whose threads run.
    static uint32_t count();

    // Tells the PEs that the server ends, and that this is no failure; returns when its thread has ended. Repeatable.
    void stop();

  private:
    // A process that has connected: a PE once it has joined.
    struct Peer {
        os::OwnDescriptor fd;  // -1: closed
        std::string address;
        Inbox inbox;
        Outbox out;
        uint64_t end_by_ns = 0;   // of what is no PE: closed then
        bool is_refused = false;  // its bytes are not read any more
        bool has_joined = false;
        JoinRequest who = {};
        bool is_in_fence = false;
        bool has_left = false;
        std::string wanted;  // key of the get that waits for an entry of wanted_pe; empty: none
        int32_t wanted_pe = -1;
    };
    enum class Phase { kJoining, kStarted, kOver };
    using Key = std::pair<int32_t, std::string>;

    static void* serve(void* server);
    void run();
    void poll_once();
    void accept_one();
    void read_from(Peer& peer);
    void write_to(Peer& peer);
    void take_messages(Peer& peer);
    void join(Peer& peer, const JoinRequest& who);
    std::string objection_to(const JoinRequest& who) const;
    void forget_join(Peer& peer);
    void refuse(Peer& peer, const std::string& why);
    bool has_all();
    void start_job();
    // The handlers of a PE's messages; false: it breaks the protocol.
    bool handle(Peer& peer, const Message& message);
    bool publish(Peer& peer, std::string_view payload);
    bool enter_fence(Peer& peer, std::string_view payload);
    bool look_up(Peer& peer, std::string_view payload);
    void end_fence();
    void lose(Peer& peer);
    void look_at_deadlines();
    std::string describe_missing() const;
    std::string describe_late() const;
    void end_job(int status, const std::string& text, const Peer* cause);
    void flush_and_part();
    template <class Visit>
    void for_each_pe(Visit visit);

    const pid_t process_;  // a forked child has a copy of the server, and not its thread
    const uint64_t token_;
    const uint64_t timeout_s_;
    const int given_n_pes_;  // 0: what PE 0 says is right
    int n_pes_;              // 0: not known yet
    os::OwnDescriptor listener_;
    os::OwnDescriptor stop_;  // an event that ends the server
    pthread_t thread_ = {};
    bool is_joined_ = false;  // by stop, or detached; under the lock of all servers
    std::atomic<bool> is_over_{false};
    Phase phase_ = Phase::kJoining;
    std::vector<std::unique_ptr<Peer>> peers_;
    std::vector<pollfd> polled_;  // by poll_once: LeakSanitizer in a forked child does not see the thread's stack
    int joined_ = 0;
    int in_fence_ = 0;
    int left_ = 0;
    bool fence_collects_ = false;
    uint64_t due_ns_ = 0;            // when all must have come, to the start or to a fence that collects; 0: whenever
    uint64_t listens_again_ns_ = 0;  // after an accept without descriptors
    int told_ = 0;                   // refusals that were reported
    std::map<Key, std::string> entries_;
    std::vector<Key> uncollected_;  // published since the last fence that has collected

    Server(uint64_t token, int n_pes, uint64_t timeout_s)
        : process_(getpid()), token_(token), timeout_s_(timeout_s), given_n_pes_(n_pes), n_pes_(n_pes) {}
};

}  // namespace heddle::bootstrap::rendezvous
