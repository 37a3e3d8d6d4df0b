// Descriptor passing: a process hands an open file to others by an abstract socket (SCM_RIGHTS). Works across user,
// process and mount namespaces, in one network namespace, and needs no /proc. Errors are negative errno values; nothing
// here prints.
//
// Each process of the network namespace sees the socket's name and may connect. The file is given to the connections
// that begin with the secret; others are closed. One that says nothing is closed when kMostGuests newer ones are open.
#pragma once

#include <pthread.h>
#include <cstdint>

namespace heddle::os {

// What a process needs to fetch the file.
struct DescriptorOffer {
    uint64_t name;  // of the socket
    uint64_t secret;
};

// Serves a file on a thread of its own, from start to stop. Threads: one calls.
class DescriptorServer {
  public:
    static constexpr int kMostGuests = 64;

    DescriptorServer() = default;
    ~DescriptorServer() { stop(); }
    DescriptorServer(const DescriptorServer&) = delete;
    DescriptorServer& operator=(const DescriptorServer&) = delete;

    // fd stays the caller's, open until stop. 0, or a negative errno.
    int start(int fd, DescriptorOffer* offer);
    // Ends the thread and closes the socket; later connections are refused. May be called repeatedly.
    void stop();

  private:
    static void* run(void* self);
    void serve();
    bool answer(int guest) const;

    int listener_ = -1;
    int fd_ = -1;
    uint64_t secret_ = 0;
    pthread_t thread_ = {};
};

// The file that a server offers, closed on exec; or a negative errno: -ECONNREFUSED when no such server is in this
// network namespace, -ETIMEDOUT after timeout_ns, -EMFILE when this process may have no more files.
int fetch_descriptor(const DescriptorOffer& offer, uint64_t timeout_ns);

}  // namespace heddle::os
