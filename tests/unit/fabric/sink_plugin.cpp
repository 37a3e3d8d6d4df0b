// A transport as a plugin whose PEs do nothing but acknowledge: what is sent is let go of at once, and acknowledged by
// the next progress. For counting what many streams cost the PE that sends.
#include "fabric/protocol/message.h"
#include "fabric/transport/transport.h"

#include <sys/eventfd.h>
#include <unistd.h>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace heddle::fabric {

struct Endpoint {
    int pe;
};

struct Transport {
    Events events;
    int descriptor;
    std::vector<Header> acks;
    std::vector<std::unique_ptr<Endpoint>> endpoints;
};

namespace {

bool open(const Options&, const Events& events, Transport** transport, char*, size_t) {
    *transport = new Transport{events, eventfd(0, EFD_CLOEXEC), {}, {}};
    return true;
}

void close(Transport* transport) {
    ::close(transport->descriptor);
    delete transport;
}

size_t address_blob(const Transport*, char* address_blob) {
    memcpy(address_blob, "sink", 4);
    return 4;
}

Endpoint* connect(Transport* transport, int, int pe, const char*, size_t, char*, size_t) {
    transport->endpoints.push_back(std::make_unique<Endpoint>(pe));
    return transport->endpoints.back().get();
}

void send(Transport* transport, int, Endpoint* to, const void* bytes, const char*, size_t body_bytes, bool, Done done,
          void* argument) {
    Header header;
    memcpy(&header, bytes, sizeof header);
    if (header.kind == MessageKind::kRecords) {
        const auto records = header.as<RecordsHeader>();
        Header ack = AckHeader{.position = records.position + body_bytes, .stream_set = records.stream_set};
        ack.token = header.token;
        ack.pe = to->pe;
        transport->acks.push_back(ack);
    }
    if (done)
        done(argument);
}

bool progress(Transport* transport, int channel) {
    const std::vector<Header> acks = std::exchange(transport->acks, {});
    for (const Header& ack : acks) transport->events.arrived(transport->events.owner, channel, &ack, nullptr, 0);
    return !acks.empty();
}

}  // namespace

}  // namespace heddle::fabric

using namespace heddle::fabric;

extern "C" __attribute__((visibility("default"))) const TransportApi heddle_transport_1;
const TransportApi heddle_transport_1 = {
    .name = "sink",
    .open = open,
    .close = close,
    .is_native = [](const Transport*, const Endpoint*) { return false; },
    .address_blob = address_blob,
    .connect = connect,
    .send = send,
    .receive = nullptr,
    .refuse = nullptr,
    .put = nullptr,
    .get = nullptr,
    .progress = progress,
    .descriptor = [](const Transport* transport, int) { return transport->descriptor; },
    .arm = [](Transport*, int) { return true; },
};
