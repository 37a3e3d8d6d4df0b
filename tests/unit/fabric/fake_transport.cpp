#include "unit/fabric/fake_transport.h"

#include <sys/eventfd.h>
#include <unistd.h>
#include <algorithm>
#include <cstring>

namespace heddle::fabric {

Habits fake_habits;

namespace {

using FakeChannel = Transport::Channel;

FakeChannel& channel_of(const Transport* transport, int number) {
    return *transport->channels[static_cast<size_t>(number)];
}

bool takes_chance(const Transport& transport, FakeChannel& channel) {
    return channel.random() % 8 >= transport.habits.lazy;
}

void ring(FakeChannel& channel) {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(channel.descriptor, &one, sizeof one);
}

void finish(Transport* transport, int number, Done done, void* argument) {
    FakeChannel& channel = channel_of(transport, number);
    const std::lock_guard<std::mutex> locked(channel.lock);
    channel.finished.push_back({done, argument});
    ring(channel);
}

// One message goes over; the body of a small one with it.
void depart(Transport* from, int number, const Transport::Out& out) {
    FakeChannel& there = channel_of(out.to, number);
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
    FakeChannel& channel = channel_of(transport, number);
    bool moved = false;
    while (!channel.out.empty() && !channel.holds && takes_chance(*transport, channel)) {
        const Transport::Out out = channel.out.front();
        channel.out.pop_front();
        depart(transport, number, out);
        if (!out.large)
            finish(transport, number, out.done, out.argument);
        moved = true;
    }
    return moved;
}

bool finish_some(Transport* transport, int number) {
    FakeChannel& channel = channel_of(transport, number);
    bool moved = false;
    while (!channel.keeps && takes_chance(*transport, channel)) {
        Transport::Finished finished;
        {
            const std::lock_guard<std::mutex> locked(channel.lock);
            if (channel.finished.empty())
                break;
            const size_t which = transport->habits.lazy ? channel.random() % channel.finished.size() : 0;
            finished = channel.finished[which];
            channel.finished.erase(channel.finished.begin() + static_cast<ptrdiff_t>(which));
        }
        if (finished.done)
            finished.done(finished.argument);
        moved = true;
    }
    return moved;
}

void deliver(Transport* transport, int number, const Transport::In& in) {
    FakeChannel& channel = channel_of(transport, number);
    // From memory of exactly its size, so that a sanitizer sees what is read beside it.
    const size_t shift = transport->habits.misaligns ? channel.random() % 8 : 0;
    std::vector<char> body(shift + in.body.size());
    std::copy(in.body.begin(), in.body.end(), body.begin() + static_cast<ptrdiff_t>(shift));
    transport->events.arrived(transport->events.owner, number, &in.header, body.data() + shift, in.body.size());
}

// The next of the small ones; where records are shuffled, any of them in place of the first.
bool take_small(Transport* transport, FakeChannel& channel, Transport::In* in) {
    const std::lock_guard<std::mutex> locked(channel.lock);
    if (channel.in.empty())
        return false;
    size_t which = 0;
    const auto has_records = [&](size_t index) {
        const MessageKind kind = channel.in[index].header.kind;
        return kind == MessageKind::kRecords || kind == MessageKind::kGathered;
    };
    if (transport->habits.shuffles_records && has_records(0)) {
        which = channel.random() % channel.in.size();
        if (!has_records(which))
            which = 0;
    }
    *in = std::move(channel.in[which]);
    channel.in.erase(channel.in.begin() + static_cast<ptrdiff_t>(which));
    return true;
}

bool announce_some(Transport* transport, int number) {
    FakeChannel& channel = channel_of(transport, number);
    bool moved = false;
    while (takes_chance(*transport, channel)) {
        std::unique_ptr<Arrival> arrival;
        {
            const std::lock_guard<std::mutex> locked(channel.lock);
            if (channel.large_in.empty())
                break;
            const size_t which = transport->habits.lazy ? channel.random() % channel.large_in.size() : 0;
            arrival = std::move(channel.large_in[which]);
            channel.large_in.erase(channel.large_in.begin() + static_cast<ptrdiff_t>(which));
        }
        Arrival* const it = arrival.get();
        channel.receiving.push_back(std::move(arrival));
        transport->events.announced(transport->events.owner, number, &it->header, it->bytes, it);
        moved = true;
    }
    return moved;
}

bool receive_some(Transport* transport, int number) {
    FakeChannel& channel = channel_of(transport, number);
    bool moved = false;
    for (size_t i = 0; !channel.keeps_large && i < channel.receiving.size();) {
        if (!channel.receiving[i]->to || !takes_chance(*transport, channel)) {
            ++i;
            continue;
        }
        const std::unique_ptr<Arrival> arrival = std::move(channel.receiving[i]);
        channel.receiving.erase(channel.receiving.begin() + static_cast<ptrdiff_t>(i));
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
    FakeChannel& channel = channel_of(transport, number);
    bool moved = false;
    while (!channel.native.empty() && channel.native_moves != 0 && takes_chance(*transport, channel)) {
        const auto which =
            channel.native.begin() +
            static_cast<ptrdiff_t>(transport->habits.lazy ? channel.random() % channel.native.size() : 0);
        const Transport::Native native = *which;
        channel.native.erase(which);
        --channel.native_moves;
        move(native);
        finish(transport, number, native.done, native.argument);
        moved = true;
    }
    return moved;
}

// --- The interface

bool open(const Options& options, const Events& events, Transport** transport, char*, size_t) {
    *transport = new Transport(events, options.channels, fake_habits);
    (*transport)->is_native = options.protocol == Protocol::kRma;
    std::copy_n(options.regions, kRegions, (*transport)->regions);
    return true;
}

bool is_native(const Transport* transport, const Endpoint*) {
    return transport->is_native;
}

void close(Transport* transport) {
    delete transport;
}

size_t address_blob(const Transport* transport, char* address_blob) {
    memcpy(address_blob, &transport, sizeof transport);
    return sizeof transport;
}

Endpoint* connect(Transport* transport, int channel, int, const char* address_blob, size_t address_blob_bytes, char*,
                  size_t) {
    transport->endpoints.push_back(std::make_unique<Endpoint>(Endpoint{nullptr, channel}));
    Endpoint* const endpoint = transport->endpoints.back().get();
    if (address_blob_bytes == sizeof endpoint->to)
        memcpy(&endpoint->to, address_blob, address_blob_bytes);
    return endpoint;
}

void send(Transport* transport, int number, Endpoint* to, const void* header, const char* body, size_t bytes,
          bool large, Done done, void* argument) {
    FakeChannel& channel = channel_of(transport, number);
    Transport::Out out = {{}, to->to, body, bytes, large, done, argument};
    memcpy(&out.header, header, sizeof out.header);
    channel.ways.emplace_back(to, out.header.kind);
    if (out.header.kind != MessageKind::kConnect) {
        channel.sent.push_back(out.header);
        channel.sent_bytes += bytes;
    }
    const bool at_once = channel.on_send && channel.on_send();
    // Some are sent and done before the call returns.
    if (at_once || (!large && transport->habits.lazy && channel.out.empty() && !channel.holds && !channel.keeps &&
                    channel.random() % 4 == 0)) {
        depart(transport, number, out);
        if (done)
            done(argument);
        return;
    }
    channel.out.push_back(out);
}

void receive(Transport*, int, int, Arrival* arrival, char* to, size_t bytes, Done done, void* argument) {
    arrival->to = to;
    arrival->bytes = bytes;
    arrival->received = done;
    arrival->received_argument = argument;
}

void refuse(Transport* transport, int number, Arrival* arrival) {
    FakeChannel& channel = channel_of(transport, number);
    ++channel.refused;
    finish(arrival->from, number, arrival->done, arrival->argument);
    std::erase_if(channel.receiving, [&](const auto& one) { return one.get() == arrival; });
}

void begin(Transport* transport, int number, const Transport::Native& native) {
    FakeChannel& channel = channel_of(transport, number);
    // Some are done before the call returns.
    if (transport->habits.lazy && channel.random() % 4 == 0) {
        move(native);
        return native.done(native.argument);
    }
    channel.native.push_back(native);
    ring(channel);
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
    FakeChannel& channel = channel_of(transport, number);
    if (channel.on_progress)
        channel.on_progress();
    bool moved = depart_some(transport, number);
    moved |= move_native(transport, number);
    moved |= finish_some(transport, number);
    Transport::In in;
    while (takes_chance(*transport, channel) && take_small(transport, channel, &in)) {
        deliver(transport, number, in);
        moved = true;
    }
    moved |= announce_some(transport, number);
    moved |= receive_some(transport, number);
    return moved;
}

int descriptor(const Transport* transport, int number) {
    return channel_of(transport, number).descriptor;
}

bool arm(Transport* transport, int number) {
    FakeChannel& channel = channel_of(transport, number);
    ++channel.arms;
    const std::lock_guard<std::mutex> locked(channel.lock);
    uint64_t count;
    [[maybe_unused]] const ssize_t got = read(channel.descriptor, &count, sizeof count);
    return channel.out.empty() && channel.native.empty() && channel.receiving.empty() && channel.in.empty() &&
           channel.large_in.empty() && channel.finished.empty();
}

}  // namespace

Transport::Transport(const Events& its_events, int n_channels, const Habits& its_habits)
    : events(its_events), habits(its_habits) {
    for (int i = 0; i < n_channels; ++i) {
        channels.push_back(std::make_unique<Channel>());
        channels.back()->random.seed(habits.seed + static_cast<uint64_t>(i));
        channels.back()->descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    }
}

Transport::~Transport() {
    for (const auto& channel : channels) ::close(channel->descriptor);
}

bool Transport::is_empty() {
    return std::all_of(channels.begin(), channels.end(), [](const auto& channel) {
        const std::lock_guard<std::mutex> locked(channel->lock);
        return channel->out.empty() && channel->native.empty() && channel->receiving.empty() && channel->in.empty() &&
               channel->large_in.empty() && channel->finished.empty();
    });
}

const TransportApi fake_api = {"fake",  open,   close, is_native, address_blob, connect,    send,
                               receive, refuse, put,   get,       progress,     descriptor, arm};

}  // namespace heddle::fabric
