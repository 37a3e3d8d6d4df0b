#include "unit/fabric/fake_transport.h"

#include <sys/eventfd.h>
#include <unistd.h>
#include <algorithm>
#include <cstring>

namespace heddle::fabric {

Habits fake_habits;

namespace {

using FakeWire = Transport::Wire;

FakeWire& wire_of(const Transport* transport, int number) {
    return *transport->wires[static_cast<size_t>(number)];
}

bool takes_chance(const Transport& transport, FakeWire& wire) {
    return wire.random() % 8 >= transport.habits.lazy;
}

void ring(FakeWire& wire) {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(wire.descriptor, &one, sizeof one);
}

void finish(Transport* transport, int number, Done done, void* argument) {
    FakeWire& wire = wire_of(transport, number);
    const std::lock_guard<std::mutex> locked(wire.lock);
    wire.finished.push_back({done, argument});
    ring(wire);
}

// One message goes over; the body of a small one with it.
void depart(Transport* from, int number, const Transport::Out& out) {
    FakeWire& there = wire_of(out.to, number);
    if (out.large) {
        auto arrival =
            std::make_unique<Arrival>(Arrival{out.header, from, out.body, out.bytes, out.done, out.argument});
        const std::lock_guard<std::mutex> locked(there.lock);
        there.large_in.push_back(std::move(arrival));
    } else {
        const std::lock_guard<std::mutex> locked(there.lock);
        there.in.push_back({out.header, {out.body, out.body + out.bytes}});
    }
    ring(there);
}

bool depart_some(Transport* transport, int number) {
    FakeWire& wire = wire_of(transport, number);
    bool moved = false;
    while (!wire.out.empty() && !wire.holds && takes_chance(*transport, wire)) {
        const Transport::Out out = wire.out.front();
        wire.out.pop_front();
        depart(transport, number, out);
        if (!out.large)
            finish(transport, number, out.done, out.argument);
        moved = true;
    }
    return moved;
}

bool finish_some(Transport* transport, int number) {
    FakeWire& wire = wire_of(transport, number);
    bool moved = false;
    while (!wire.keeps && takes_chance(*transport, wire)) {
        Transport::Finished finished;
        {
            const std::lock_guard<std::mutex> locked(wire.lock);
            if (wire.finished.empty())
                break;
            const size_t which = transport->habits.lazy ? wire.random() % wire.finished.size() : 0;
            finished = wire.finished[which];
            wire.finished.erase(wire.finished.begin() + static_cast<ptrdiff_t>(which));
        }
        if (finished.done)
            finished.done(finished.argument);
        moved = true;
    }
    return moved;
}

void deliver(Transport* transport, int number, const Transport::In& in) {
    FakeWire& wire = wire_of(transport, number);
    // From memory of exactly its size, so that a sanitizer sees what is read beside it.
    const size_t shift = transport->habits.misaligns ? wire.random() % 8 : 0;
    std::vector<char> body(shift + in.body.size());
    std::copy(in.body.begin(), in.body.end(), body.begin() + static_cast<ptrdiff_t>(shift));
    transport->events.arrived(transport->events.owner, number, &in.header, body.data() + shift, in.body.size());
}

// The next of the small ones; where records are shuffled, any of them in place of the first.
bool take_small(Transport* transport, FakeWire& wire, Transport::In* in) {
    const std::lock_guard<std::mutex> locked(wire.lock);
    if (wire.in.empty())
        return false;
    size_t which = 0;
    if (transport->habits.shuffles_records && wire.in[0].header.kind == MessageKind::kRecords) {
        which = wire.random() % wire.in.size();
        if (wire.in[which].header.kind != MessageKind::kRecords)
            which = 0;
    }
    *in = std::move(wire.in[which]);
    wire.in.erase(wire.in.begin() + static_cast<ptrdiff_t>(which));
    return true;
}

bool announce_some(Transport* transport, int number) {
    FakeWire& wire = wire_of(transport, number);
    bool moved = false;
    while (takes_chance(*transport, wire)) {
        std::unique_ptr<Arrival> arrival;
        {
            const std::lock_guard<std::mutex> locked(wire.lock);
            if (wire.large_in.empty())
                break;
            const size_t which = transport->habits.lazy ? wire.random() % wire.large_in.size() : 0;
            arrival = std::move(wire.large_in[which]);
            wire.large_in.erase(wire.large_in.begin() + static_cast<ptrdiff_t>(which));
        }
        Arrival* const it = arrival.get();
        wire.receiving.push_back(std::move(arrival));
        transport->events.announced(transport->events.owner, number, &it->header, it->bytes, it);
        moved = true;
    }
    return moved;
}

bool receive_some(Transport* transport, int number) {
    FakeWire& wire = wire_of(transport, number);
    bool moved = false;
    for (size_t i = 0; !wire.keeps_large && i < wire.receiving.size();) {
        if (!wire.receiving[i]->to || !takes_chance(*transport, wire)) {
            ++i;
            continue;
        }
        const std::unique_ptr<Arrival> arrival = std::move(wire.receiving[i]);
        wire.receiving.erase(wire.receiving.begin() + static_cast<ptrdiff_t>(i));
        memcpy(arrival->to, arrival->body, arrival->bytes);
        finish(arrival->from, number, arrival->done, arrival->argument);
        if (arrival->received)
            arrival->received(arrival->received_argument);
        moved = true;
    }
    return moved;
}

void move(const Transport::Native& native) {
    memcpy(native.puts ? native.there : native.here, native.puts ? native.here : native.there, native.bytes);
}

// Puts and gets, in any order.
bool move_native(Transport* transport, int number) {
    FakeWire& wire = wire_of(transport, number);
    bool moved = false;
    while (!wire.native.empty() && wire.native_moves != 0 && takes_chance(*transport, wire)) {
        const auto which = wire.native.begin() +
                           static_cast<ptrdiff_t>(transport->habits.lazy ? wire.random() % wire.native.size() : 0);
        const Transport::Native native = *which;
        wire.native.erase(which);
        --wire.native_moves;
        move(native);
        finish(transport, number, native.done, native.argument);
        moved = true;
    }
    return moved;
}

// --- The interface

bool open(const Options& options, const Events& events, Transport** transport, char*, size_t) {
    *transport = new Transport(events, options.wires, fake_habits);
    (*transport)->is_native = options.protocol == Protocol::kNative;
    std::copy_n(options.regions, kRegions, (*transport)->regions);
    return true;
}

bool is_native(const Transport* transport, const Endpoint*) {
    return transport->is_native;
}

void close(Transport* transport) {
    delete transport;
}

size_t card(const Transport* transport, char* card) {
    memcpy(card, &transport, sizeof transport);
    return sizeof transport;
}

Endpoint* connect(Transport* transport, int wire, int, const char* card, size_t card_bytes, char*, size_t) {
    transport->endpoints.push_back(std::make_unique<Endpoint>(Endpoint{nullptr, wire}));
    Endpoint* const endpoint = transport->endpoints.back().get();
    if (card_bytes == sizeof endpoint->to)
        memcpy(&endpoint->to, card, card_bytes);
    return endpoint;
}

void send(Transport* transport, int number, Endpoint* to, const void* header, const char* body, size_t bytes,
          bool large, Done done, void* argument) {
    FakeWire& wire = wire_of(transport, number);
    Transport::Out out = {{}, to->to, body, bytes, large, done, argument};
    memcpy(&out.header, header, sizeof out.header);
    if (out.header.kind != MessageKind::kHello) {
        wire.sent.push_back(out.header);
        wire.sent_bytes += bytes;
    }
    // Some are sent and done before the call returns.
    if (!large && transport->habits.lazy && wire.out.empty() && !wire.holds && !wire.keeps && wire.random() % 4 == 0) {
        depart(transport, number, out);
        if (done)
            done(argument);
        return;
    }
    wire.out.push_back(out);
}

void drop(Transport* transport, int number, Endpoint* endpoint) {
    FakeWire& wire = wire_of(transport, number);
    for (const Transport::Out& out : wire.out)
        if (out.to == endpoint->to)
            finish(transport, number, out.done, out.argument);
    std::erase_if(wire.out, [&](const Transport::Out& out) { return out.to == endpoint->to; });
}

void receive(Transport*, int, int, Arrival* arrival, char* to, size_t bytes, Done done, void* argument) {
    arrival->to = to;
    arrival->bytes = bytes;
    arrival->received = done;
    arrival->received_argument = argument;
}

void refuse(Transport* transport, int number, Arrival* arrival) {
    FakeWire& wire = wire_of(transport, number);
    ++wire.refused;
    finish(arrival->from, number, arrival->done, arrival->argument);
    std::erase_if(wire.receiving, [&](const auto& one) { return one.get() == arrival; });
}

void begin(Transport* transport, int number, const Transport::Native& native) {
    FakeWire& wire = wire_of(transport, number);
    // Some are done before the call returns.
    if (transport->habits.lazy && wire.random() % 4 == 0) {
        move(native);
        return native.done(native.argument);
    }
    wire.native.push_back(native);
    ring(wire);
}

void put(Transport* transport, int number, Endpoint* to, int region, uint64_t offset, const char* from, size_t bytes,
         Done done, void* argument) {
    begin(transport, number,
          {to->to->regions[region].base + offset, const_cast<char*>(from), bytes, true, done, argument});
}

void get(Transport* transport, int number, Endpoint* from, int region, uint64_t offset, char* to, size_t bytes,
         Done done, void* argument) {
    begin(transport, number, {from->to->regions[region].base + offset, to, bytes, false, done, argument});
}

bool progress(Transport* transport, int number) {
    FakeWire& wire = wire_of(transport, number);
    bool moved = depart_some(transport, number);
    moved |= move_native(transport, number);
    moved |= finish_some(transport, number);
    Transport::In in;
    while (takes_chance(*transport, wire) && take_small(transport, wire, &in)) {
        deliver(transport, number, in);
        moved = true;
    }
    moved |= announce_some(transport, number);
    moved |= receive_some(transport, number);
    return moved;
}

int descriptor(const Transport* transport, int number) {
    return wire_of(transport, number).descriptor;
}

bool arm(Transport* transport, int number) {
    FakeWire& wire = wire_of(transport, number);
    const std::lock_guard<std::mutex> locked(wire.lock);
    uint64_t count;
    [[maybe_unused]] const ssize_t got = read(wire.descriptor, &count, sizeof count);
    return wire.out.empty() && wire.native.empty() && wire.receiving.empty() && wire.in.empty() &&
           wire.large_in.empty() && wire.finished.empty();
}

}  // namespace

Transport::Transport(const Events& its_events, int n_wires, const Habits& its_habits)
    : events(its_events), habits(its_habits) {
    for (int i = 0; i < n_wires; ++i) {
        wires.push_back(std::make_unique<Wire>());
        wires.back()->random.seed(habits.seed + static_cast<uint64_t>(i));
        wires.back()->descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    }
}

Transport::~Transport() {
    for (const auto& wire : wires) ::close(wire->descriptor);
}

bool Transport::is_empty() {
    return std::all_of(wires.begin(), wires.end(), [](const auto& wire) {
        const std::lock_guard<std::mutex> locked(wire->lock);
        return wire->out.empty() && wire->native.empty() && wire->receiving.empty() && wire->in.empty() &&
               wire->large_in.empty() && wire->finished.empty();
    });
}

const TransportApi fake_api = {"fake",  open,   close, is_native, card,     connect,    drop, send,
                               receive, refuse, put,   get,       progress, descriptor, arm};

}  // namespace heddle::fabric
