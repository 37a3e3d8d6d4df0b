// Connection: the socket between a PE and its process manager, and the exchange of a message for its answer. Every wait
// for the process manager has a deadline, and every failure is a line of text.
//
// Threads: any. Exchanges exclude each other. While a thread waits for a barrier, others may exchange messages. One of
// them may receive the barrier's answer, and notes it for the thread that waits.
#pragma once

#include "bootstrap/pmi/message.h"
#include "bootstrap/reason.h"

#include <pthread.h>
#include <cstddef>
#include <cstdint>

namespace heddle::bootstrap::pmi {

class Connection {
  public:
    // Takes the socket, or connects to HOST:PORT. timeout_s: of each answer.
    bool open(int fd, uint64_t timeout_s, const Reason& reason);
    bool connect(const char* host_and_port, uint64_t timeout_s, const Reason& reason);
    void close();
    void set_timeout(uint64_t timeout_s) { timeout_s_ = timeout_s; }
    int fd() const { return fd_; }
    void set_version(Version version) { version_ = version; }
    Version version() const { return version_; }

    // Sends the request, and waits for the answer to `expected`. False also where the answer has a failure (rc).
    bool exchange(Request& request, const char* expected, Answer* answer, const Reason& reason);
    // Waits for one message of the process manager that no request has asked for.
    bool receive(const char* expected, Answer* answer, const Reason& reason);
    // Sends the request for a barrier, and waits for its answer, which the exchanges of other threads may overtake.
    // has_deadline: the wait has that of an exchange; otherwise it takes as long as the PEs take.
    bool pass_barrier(Request& request, const char* expected, bool has_deadline, const Reason& reason);
    // Sends the request, whatever another thread waits for.
    void send_last(Request& request);

  private:
    static constexpr int kPollMs = 100;  // the answer to the barrier may have come to another thread

    bool send(Request& request, uint64_t deadline_ns, const Reason& reason);
    bool receive_any(Answer* answer, uint64_t deadline_ns, const Reason& reason);
    bool receive_answer(const char* expected, Answer* answer, const Reason& reason);
    bool fill(size_t bytes, uint64_t deadline_ns, const Reason& reason);
    bool wait(short events, uint64_t deadline_ns, const Reason& reason);
    void consume(size_t bytes);
    uint64_t deadline() const;

    pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
    int fd_ = -1;
    Version version_ = Version::k1;
    uint64_t timeout_s_ = 0;
    const char* barrier_ = nullptr;  // the command that a thread waits for in pass_barrier
    bool is_barrier_passed_ = false;
    size_t used_ = 0;  // bytes in buffer_ that have come, and are not parsed yet
    char buffer_[kMaxMessageBytes];
};

}  // namespace heddle::bootstrap::pmi
