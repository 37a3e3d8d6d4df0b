#include "bootstrap/rendezvous/unique_id.h"

#include "bootstrap/job_page.h"
#include "bootstrap/launch_environment.h"
#include "os/process.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace heddle::bootstrap::rendezvous {

namespace {

constexpr uint64_t kIdMagic = 0x3164696464656800;  // changes with IdLayout and the messages
constexpr size_t kMaxAddresses = 5;
constexpr size_t kAddressBytes = 16;  // of IPv6; IPv4 takes the first four

struct IdLayout {
    uint64_t magic;
    uint64_t sum;  // FNV-1a of what follows
    uint64_t token;
    uint16_t port;
    uint8_t count;
    uint8_t families[kMaxAddresses];  // 4 or 6
    uint8_t addresses[kMaxAddresses][kAddressBytes];
    uint8_t unused[kIdBytes - 32 - kMaxAddresses * kAddressBytes];
};
static_assert(sizeof(IdLayout) == kIdBytes);

uint64_t sum_of(const IdLayout& id) {
    const char* const begin = reinterpret_cast<const char*>(&id.token);
    return os::hash_of({begin, static_cast<size_t>(reinterpret_cast<const char*>(&id + 1) - begin)});
}

void set_port(Endpoint* endpoint, uint16_t port) {
    if (endpoint->address.ss_family == AF_INET)
        reinterpret_cast<sockaddr_in*>(&endpoint->address)->sin_port = htons(port);
    else
        reinterpret_cast<sockaddr_in6*>(&endpoint->address)->sin6_port = htons(port);
}

Endpoint make_endpoint(int family, const void* address, uint16_t port) {
    Endpoint endpoint;
    endpoint.address.ss_family = static_cast<sa_family_t>(family);
    if (family == AF_INET) {
        memcpy(&reinterpret_cast<sockaddr_in*>(&endpoint.address)->sin_addr, address, sizeof(in_addr));
        endpoint.bytes = sizeof(sockaddr_in);
    } else {
        memcpy(&reinterpret_cast<sockaddr_in6*>(&endpoint.address)->sin6_addr, address, sizeof(in6_addr));
        endpoint.bytes = sizeof(sockaddr_in6);
    }
    set_port(&endpoint, port);
    return endpoint;
}

const void* address_of(const sockaddr* address) {
    return address->sa_family == AF_INET
               ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(address)->sin_addr)
               : static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

bool is_named(const char* devices, std::string_view name) {
    for (std::string_view rest = devices; !rest.empty();) {
        const std::string_view one = rest.substr(0, rest.find(','));
        if (one == name)
            return true;
        rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    }
    return false;
}

// True for an address by which another host may reach this one.
bool is_of_host(const ifaddrs& interface) {
    if (!interface.ifa_addr || !(interface.ifa_flags & IFF_UP) || !(interface.ifa_flags & IFF_RUNNING) ||
        (interface.ifa_flags & IFF_LOOPBACK))
        return false;
    const auto* const six = reinterpret_cast<const sockaddr_in6*>(interface.ifa_addr);
    return interface.ifa_addr->sa_family == AF_INET ||
           (interface.ifa_addr->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr));
}

// torchrun's own store has MASTER_PORT where it says so; the next port is free for the job.
bool has_store_of_agent() {
    const char* const text = getenv("TORCHELASTIC_USE_AGENT_STORE");
    return text && strcmp(text, "True") == 0;
}

}  // namespace

std::string Endpoint::text() const {
    char host[64] = "?", port[16] = "?";
    getnameinfo(reinterpret_cast<const sockaddr*>(&address), bytes, host, sizeof host, port, sizeof port,
                NI_NUMERICHOST | NI_NUMERICSERV);
    constexpr std::string_view kMapped = "::ffff:";  // IPv4 on a socket of IPv6
    const bool is_mapped = std::string_view(host).substr(0, kMapped.size()) == kMapped;
    const bool is_six = address.ss_family == AF_INET6 && !is_mapped;
    char text[sizeof host + sizeof port + 4];
    snprintf(text, sizeof text, "%s%s%s:%s", is_six ? "[" : "", host + (is_mapped ? kMapped.size() : 0),
             is_six ? "]" : "", port);
    return text;
}

void write_id(uint64_t token, uint16_t port, const char* devices, IdBytes* id) {
    IdLayout packed = {};
    packed.magic = kIdMagic;
    packed.token = token;
    packed.port = port;
    ifaddrs* all = nullptr;
    if (getifaddrs(&all) != 0)
        all = nullptr;
    const auto add = [&](const sockaddr* address) {
        const bool is_four = address->sa_family == AF_INET;
        packed.families[packed.count] = is_four ? 4 : 6;
        memcpy(packed.addresses[packed.count++], address_of(address), is_four ? sizeof(in_addr) : sizeof(in6_addr));
    };
    for (const bool only_named : {true, false}) {
        if (packed.count > 0)
            break;
        for (const int family : {AF_INET, AF_INET6})
            for (const ifaddrs* each = all; each; each = each->ifa_next)
                if (packed.count < kMaxAddresses && is_of_host(*each) && each->ifa_addr->sa_family == family &&
                    (!only_named || is_named(devices, each->ifa_name)))
                    add(each->ifa_addr);
    }
    if (all)
        freeifaddrs(all);
    if (packed.count == 0) {
        const Endpoint loopback = make_endpoint(AF_INET, "\x7f\0\0\1", 0);
        add(reinterpret_cast<const sockaddr*>(&loopback.address));
    }
    packed.sum = sum_of(packed);
    memcpy(id->data(), &packed, sizeof packed);
}

bool read_id(const IdBytes& id, Place* place, const Reason& reason) {
    IdLayout packed;
    memcpy(&packed, id.data(), sizeof packed);
    if (packed.magic != kIdMagic || packed.sum != sum_of(packed) || packed.port == 0 || packed.count == 0 ||
        packed.count > kMaxAddresses)
        return reason.fail(
            "id is no unique id: right would be the %zu bytes that shmemx_get_uniqueid of this version of Heddle has "
            "written",
            kIdBytes);
    place->token = packed.token;
    place->endpoints.clear();
    for (size_t i = 0; i < packed.count; ++i)
        place->endpoints.push_back(
            make_endpoint(packed.families[i] == 4 ? AF_INET : AF_INET6, packed.addresses[i], packed.port));
    return true;
}

bool is_alone_by_environment() {
    return env_number("WORLD_SIZE") == 1 && env_number("RANK") == 0;
}

bool read_environment(const char* launch_token, Environment* environment, const Reason& reason) {
    long n_pes = 0, pe = 0, port = 0, local = 0, locals = 0;
    if (!read_env_number("WORLD_SIZE", 1, kMaxPes, &n_pes, reason) ||
        !read_env_number("RANK", 0, n_pes - 1, &pe, reason) || !read_env_number("MASTER_PORT", 1, 65534, &port, reason))
        return false;
    environment->n_pes = static_cast<int>(n_pes);
    environment->pe = static_cast<int>(pe);
    const char* const host = getenv("MASTER_ADDR");
    if (!host || !*host)
        return reason.fail("MASTER_ADDR is not set: right would be the name or address of the host of PE 0 (RANK=0)");
    if ((getenv("LOCAL_RANK") && !read_env_number("LOCAL_RANK", 0, pe, &local, reason)) ||
        (getenv("LOCAL_WORLD_SIZE") && !read_env_number("LOCAL_WORLD_SIZE", local + 1, n_pes, &locals, reason)))
        return false;
    environment->host = host;
    environment->port = std::to_string(port + has_store_of_agent());
    environment->token = os::hash_of(launch_token);
    for (const char* const name : {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"})
        environment->token = os::hash_of(std::string("\n") + (getenv(name) ? getenv(name) : ""), environment->token);
    return true;
}

bool resolve(const std::string& host, const std::string& port, std::vector<Endpoint>* endpoints, const Reason& reason) {
    addrinfo hints = {};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (const int status = getaddrinfo(host.c_str(), port.c_str(), &hints, &found); status != 0)
        return reason.fail("%s", gai_strerror(status));
    endpoints->clear();
    for (const addrinfo* each = found; each; each = each->ai_next) {
        endpoints->emplace_back();
        memcpy(&endpoints->back().address, each->ai_addr, each->ai_addrlen);
        endpoints->back().bytes = each->ai_addrlen;
    }
    freeaddrinfo(found);
    return !endpoints->empty() || reason.fail("it has no address");
}

bool listen_on(uint16_t port, bool only_loopback, os::OwnDescriptor* listener, const Reason& reason) {
    const in6_addr six = only_loopback ? in6_addr(IN6ADDR_LOOPBACK_INIT) : in6_addr(IN6ADDR_ANY_INIT);
    const in_addr four = {htonl(only_loopback ? INADDR_LOOPBACK : INADDR_ANY)};
    // A socket of IPv6 on every interface takes connections of both kinds. Loopback is that of IPv4.
    for (const int family : {AF_INET6, AF_INET}) {
        if (only_loopback && family == AF_INET6)
            continue;
        const Endpoint endpoint =
            make_endpoint(family, family == AF_INET ? static_cast<const void*>(&four) : &six, port);
        listener->take([family] { return socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0); });
        const int fd = *listener, on = 1, off = 0;
        if (fd < 0)
            continue;                                              // without IPv6
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);  // a port of a job that has ended is free
        if (family == AF_INET6)
            setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
        if (bind(fd, reinterpret_cast<const sockaddr*>(&endpoint.address), endpoint.bytes) == 0 &&
            listen(fd, SOMAXCONN) == 0)
            return true;
        const int error = errno;
        listener->close();
        errno = error;
        if (error == EADDRINUSE || error == EACCES)
            break;
    }
    return reason.fail("cannot listen on port %u: %s", static_cast<unsigned>(port), strerror(errno));
}

void watch_connection(int fd) {
    const int on = 1, idle_s = 15, interval_s = 5, count = 3;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Endpoint own_endpoint(int listener) {
    Endpoint endpoint;
    endpoint.bytes = sizeof endpoint.address;
    getsockname(listener, reinterpret_cast<sockaddr*>(&endpoint.address), &endpoint.bytes);
    const uint16_t port = endpoint.address.ss_family == AF_INET
                              ? reinterpret_cast<sockaddr_in*>(&endpoint.address)->sin_port
                              : reinterpret_cast<sockaddr_in6*>(&endpoint.address)->sin6_port;
    return make_endpoint(AF_INET, "\x7f\0\0\1", ntohs(port));
}

}  // namespace heddle::bootstrap::rendezvous
