// Control inbox: control messages that other PEs have sent to this one, until they are read. Collectives between nodes
// synchronize by them: a key says what a message is for (a team and a step of it), and a number who sent it.
//
// A control message is applied at its place in the sender's stream. A PE that has read one sees all that was put before
// it on that stream, except for large data without an order record in between.
//
// Threads: any. One short lock: control messages are rare beside records, and cross a network.
#pragma once

#include <pthread.h>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace heddle::fabric {

class ControlInbox {
  public:
    ControlInbox() = default;
    ~ControlInbox();
    ControlInbox(const ControlInbox&) = delete;
    ControlInbox& operator=(const ControlInbox&) = delete;

    void deliver(uint64_t key, uint32_t from, const char* data, size_t bytes);

    // Takes the control message for the key from this sender: true when there was one. At most `bytes` of it go to
    // `data`; *length is what it had.
    bool take(uint64_t key, uint32_t from, void* data, size_t bytes, size_t* length);

    // How many control messages have come.
    uint64_t received();

  private:
    struct ControlMessage {
        uint32_t from;
        std::vector<char> data;
    };

    pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
    std::unordered_map<uint64_t, std::vector<ControlMessage>> messages_;
    uint64_t received_ = 0;
};

}  // namespace heddle::fabric
