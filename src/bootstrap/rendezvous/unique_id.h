// The place of a rendezvous: where its server listens, and the token of its job. Two ways to say it: a unique id, which
// a program passes on as it likes, and the environment of a launcher in the way of torchrun. No state; any thread, but
// the environment must not change meanwhile.
#pragma once

#include "bootstrap/reason.h"
#include "os/own_descriptor.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace heddle::bootstrap::rendezvous {

constexpr size_t kIdBytes = 128;  // shmemx_uniqueid_t, and NVSHMEM's
using IdBytes = std::array<unsigned char, kIdBytes>;

// An address and port of TCP.
struct Endpoint {
    sockaddr_storage address = {};
    socklen_t bytes = 0;
    std::string text() const;  // "10.0.0.1:4455"
};

struct Place {
    uint64_t token = 0;
    std::vector<Endpoint> endpoints;  // of one server, to be tried in order
};

// Writes the id of a server on this port of this host: the addresses of the interfaces in HEDDLE_NET_DEVICES, or of all
// but the loopback interface, which stands alone where there is no other.
void write_id(uint64_t token, uint16_t port, const char* devices, IdBytes* id);
// False, with the reason, when the bytes are no id of this version.
bool read_id(const IdBytes& id, Place* place, const Reason& reason);

// RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT.
struct Environment {
    int pe = 0;
    int n_pes = 0;
    std::string host, port;
    uint64_t token = 0;  // made of TORCHELASTIC_RUN_ID, TORCHELASTIC_RESTART_COUNT and HEDDLE_LAUNCH_TOKEN
};
// False, with the reason, when a variable is not there or wrong; LOCAL_RANK and LOCAL_WORLD_SIZE must not contradict.
bool read_environment(const char* launch_token, Environment* environment, const Reason& reason);
// True when the environment says that the process is the only one of its job.
bool is_alone_by_environment();

// The endpoints of a host's name; false with the reason. May wait for a name server.
bool resolve(const std::string& host, const std::string& port, std::vector<Endpoint>* endpoints, const Reason& reason);

// Makes a socket that listens on the port, 0: any, of every interface, or of the loopback interface alone. False with
// the reason.
bool listen_on(uint16_t port, bool only_loopback, os::OwnDescriptor* listener, const Reason& reason);
// The listening socket, as this host reaches it.
Endpoint own_endpoint(int listener);
// Makes the kernel notice the end of the other host within half a minute, although nothing is sent.
void watch_connection(int fd);

}  // namespace heddle::bootstrap::rendezvous
