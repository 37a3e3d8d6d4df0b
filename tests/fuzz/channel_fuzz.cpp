// Bytes from the network, as a fuzzer makes them, given to channels as messages: nothing outside of this PE's regions,
// and of what its program waits for, may be read or written, and nothing but a refusal may end it.
//
// An input is a byte that says what this PE has asked for (Program), and messages, each
//     byte   bit 0 of this job, 1 large, 2 to 4 kind, 5 large bodies come later, 6 records are at `position` and not
//            behind the records before, 7 on the second rail where there are two
//     byte   sender
//     byte   stream set
//     word   position
//     byte   count
//     byte   complete
//     2 bytes, the size of the body, and the body; of a large one only the size
//     where messages are kept (fabric/multirail/retransmit_queue.h), a byte each before the size: number, receipt, rail
// A refusal ends the input: base::fatal is this file's own and throws, which is why src/fabric is compiled once more
// for it, with exceptions. An invariant that does not hold is a find.
#include "base/error.h"
#include "base/invariant.h"
#include "fabric/endpoint/channel.h"
#include "fabric/endpoint/stream.h"
#include "fabric/multirail/rail_watermarks.h"
#include "fabric/multirail/retransmitting_transport.h"
#include "fabric/transport/address_blob.h"
#include "progress/wait_policy.h"
#include "unit/fabric/headers.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace heddle {

namespace {

struct Refused {};

}  // namespace

namespace base {

void complain(const char*, const char*, ...) {}
void report(const char*, const char*, ...) {}
void fatal(const char*, const char*, ...) {
    throw Refused();
}
void invariant_failed(const char*, const char* file, int line, const char* condition, const char*, ...) {
    fprintf(stderr, "%s:%d: an invariant does not hold: %s\n", file, line, condition);
    abort();
}

}  // namespace base

namespace fabric {

struct Endpoint {
    int pe;
};
struct Arrival {
    size_t bytes;
    char* to;
    Done done;
    void* argument;
    bool refused;
};
struct Transport {
    std::vector<std::unique_ptr<Arrival>> arrivals;
    bool late = false;
};

namespace {

constexpr uint64_t kToken = 0x600d;
constexpr int kPes = 3, kRails = 2;
constexpr size_t kHeapBytes = 36 * 1024, kDataBytes = 40;

// --- A transport that has sent all at once, and reads all of it.

char bytes_sent[2 * kMessageBytes];  // the last ones

size_t address_blob(const Transport*, char* address_blob) {
    *address_blob = 'c';
    return 1;
}

Endpoint* connect(Transport*, int, int pe, const char*, size_t, char*, size_t) {
    static Endpoint endpoints[kPes];
    endpoints[pe].pe = pe;
    return &endpoints[pe];
}

void send(Transport*, int, Endpoint*, const void* header, const char* body, size_t bytes, bool, Done done,
          void* argument) {
    memcpy(bytes_sent, header, kHeaderBytes);
    if (bytes > sizeof bytes_sent)
        abort();
    if (bytes != 0)
        memcpy(bytes_sent, body, bytes);
    if (done)
        done(argument);
}

void bring(Arrival& arrival) {
    if (!arrival.to)
        return;
    memset(arrival.to, 'L', arrival.bytes);
    arrival.to = nullptr;
    if (arrival.done)
        arrival.done(arrival.argument);
}

void receive(Transport* transport, int, int, Arrival* arrival, char* to, size_t bytes, Done done, void* argument) {
    if (arrival->refused || arrival->to || bytes != arrival->bytes)
        abort();
    *arrival = {bytes, to, done, argument, false};
    if (!transport->late)
        bring(*arrival);
}

void refuse(Transport*, int, Arrival* arrival) {
    arrival->refused = true;
}

bool is_native(const Transport*, const Endpoint*) {
    return true;
}

// Is never done: this PE counts it among what it waits for.
void get(Transport*, int, Endpoint*, int, uint64_t, char*, size_t, Done, void*) {}

bool progress(Transport* transport, int) {
    for (size_t i = 0; i < transport->arrivals.size(); ++i) bring(*transport->arrivals[i]);
    return false;
}

const TransportApi kApi = {"fuzz",  nullptr, nullptr, is_native, address_blob, connect, send,
                           receive, refuse,  nullptr, get,       progress,     nullptr, nullptr};

// --- The PE

size_t own_address_blob(void*, char* address_blob) {
    size_t bytes = 0;
    for (int rail = 0; rail < kRails; ++rail) add_rail_address(kApi, nullptr, address_blob, &bytes);
    return bytes;
}
size_t address_blob_of(int, char* address_blob, char*, size_t) {
    return own_address_blob(nullptr, address_blob);
}
void lost(int, Loss, const char*) {
    throw Refused();
}
void notify(void*) {}

// What this PE's program has asked for, in memory of exactly its size.
class Program {
  public:
    Program(Channel& channel, unsigned asks) : stream_(channel, producer_, 1, group_) {
        producer_.quota.slab = &slab_;
        const auto publish = [&](auto write) { stream_.publish(write(stream_.reserve("fuzz", record::kMaxShort))); };
        const auto get = [&](size_t bytes) {
            gotten_.emplace_back(bytes, '#');
            stream_.expect_return("fuzz", gotten_.back().data(), bytes);
            publish([&](char* at) { return record::get(at, {0}, bytes); });
        };
        if (asks & 1)
            publish([](char* at) { return record::put_word(at, {0}, 1, 8); });
        if (asks & 2)
            for (const size_t bytes : {1, 2, 4, 7, 8, 100}) get(bytes);
        if (asks & 4)
            get(kLargeBytes);
        if (asks & 8) {
            body_.resize(kLargeBytes);
            stream_.put_large("fuzz", {0}, body_.data(), body_.size());
        }
        if (asks & 32 && stream_.is_native("fuzz"))
            stream_.get_native("fuzz", here_, {0}, sizeof here_);
        if (asks & 16)
            get(3);
        stream_.flush();
        channel.poll();
    }
    Stream& stream() { return stream_; }

  private:
    std::atomic<uint32_t> n_active_{0};
    RingSlab slab_;
    Producer producer_{.n_active = &n_active_, .quota = {}, .expected_wait = {}};
    StreamGroup group_{nullptr};
    Stream stream_;
    std::vector<std::vector<char>> gotten_;
    std::vector<char> body_;
    char here_[8];
};

Stream* stream_of(void* owner, uint32_t stream_set, int pe) {
    return stream_set == 0 && pe == 1 ? &(*static_cast<Program**>(owner))->stream() : nullptr;
}

std::map<std::pair<uint32_t, int>, RailWatermarks>* of_stream_sets;

// Takes the input apart; zeroes where it has ended.
class Input {
  public:
    Input(const uint8_t* at, size_t bytes) : at_(at), left_(bytes) {}
    template <class T>
    T take() {
        T value = 0;
        const size_t bytes = std::min(sizeof value, left_);
        memcpy(&value, at_, bytes);
        at_ += bytes;
        left_ -= bytes;
        return value;
    }
    // In memory of exactly that size.
    std::vector<char> body(size_t bytes) {
        bytes = std::min(bytes, left_);
        std::vector<char> body(at_, at_ + bytes);
        at_ += bytes;
        left_ -= bytes;
        return body;
    }
    bool has_ended() const { return left_ == 0; }

  private:
    const uint8_t* at_;
    size_t left_;
};

// On one of the channels; each has its own stream, which goes on where it was.
void give_message(Input& input, Channel* const* channels, RetransmittingTransport* retransmitting, int n_rails,
                  Transport& transport, uint64_t (&behind)[kRails]) {
    const auto flags = input.take<uint8_t>();
    const int rail = flags >> 7 & (n_rails - 1);
    Channel& channel = *channels[rail];
    const auto kind = static_cast<MessageKind>(flags >> 2 & 7);
    const auto pe = input.take<int8_t>();
    const auto stream_set = input.take<uint8_t>();
    auto position = input.take<uint64_t>();
    if (kind == MessageKind::kRecords && !(flags & 64))
        position = behind[rail];
    const auto count = input.take<uint8_t>();
    const auto complete = input.take<uint8_t>();
    Header header = sent_by(header_of(kind, stream_set, position, count, complete), pe, flags & 1 ? kToken : 0);
    if (retransmitting) {
        header.sequence = input.take<uint8_t>();
        header.received = input.take<uint8_t>();
        header.rail = input.take<uint8_t>();
        header.large = kind == MessageKind::kLargeData || kind == MessageKind::kLargeReply;
    }
    const auto bytes = input.take<uint16_t>();
    transport.late = flags & 32;
    if (flags & 2) {
        transport.arrivals.push_back(std::make_unique<Arrival>(Arrival{bytes, nullptr, nullptr, nullptr, false}));
        if (retransmitting)
            retransmitting->announced(rail, 0, header, transport.arrivals.back().get());
        else
            channel.announced(header, bytes, transport.arrivals.back().get());
    } else {
        const std::vector<char> body = input.body(bytes);
        if (kind == MessageKind::kRecords)
            behind[rail] += body.size();
        if (retransmitting)
            retransmitting->arrived(rail, 0, header, body.data(), body.size());
        else
            channel.arrived(header, body.data(), body.size());
    }
    channel.poll();
}

// Puts the transport that retransmits between the channels and theirs. on_rail: the channels, once there are any.
std::unique_ptr<RetransmittingTransport> keep_messages(Transport* transport, std::atomic<uint32_t>* lost_rails,
                                                       Channel** on_rail, ChannelConfig* first, ChannelConfig* second) {
    const auto channel_of = [](void* owner) -> Channel& { return **static_cast<Channel**>(owner); };
    static const auto header_of_bytes = [](const void* bytes) {
        Header header;
        memcpy(&header, bytes, sizeof header);
        return header;
    };
    static const auto channel = channel_of;
    auto all = std::make_unique<RetransmittingTransport>(RetransmittingTransport::Config{
        .api = &kApi,
        .token = kToken,
        .n_pes = kPes,
        .n_rails = kRails,
        .lost_rails = lost_rails,
        .rail_lost = first->job.rail_lost,
        .endpoint_of = [](void* owner, int, int pe) { return channel(owner).endpoint_of(pe); },
        .wake = [](void* owner, int) { channel(owner).wake(); }});
    ChannelConfig* const configs[kRails] = {first, second};
    for (int rail = 0; rail < kRails; ++rail) {
        configs[rail]->lost_rails = lost_rails;
        configs[rail]->api = &RetransmittingTransport::api();
        configs[rail]->transport =
            all->add_rail(transport, {&on_rail[rail],
                                      [](void* owner, int, const void* header, const char* body, size_t bytes) {
                                          channel(owner).arrived(header_of_bytes(header), body, bytes);
                                      },
                                      [](void* owner, int, const void* header, size_t bytes, Arrival* arrival) {
                                          channel(owner).announced(header_of_bytes(header), bytes, arrival);
                                      },
                                      nullptr});
    }
    return all;
}

void run(const uint8_t* bytes, size_t size) {
    static progress::WaitPolicy policy;
    progress::wait_policy = &policy;
    Input input(bytes, size);
    Transport transport;
    ControlInbox control_inbox;
    AddressBook addresses;
    static const std::unique_ptr<uint64_t[]> heap(new uint64_t[kHeapBytes / 8]), data(new uint64_t[kDataBytes / 8]);
    Program* asked = nullptr;
    ChannelConfig config;
    config.api = &kApi;
    config.transport = &transport;
    config.regions.of[0] = {reinterpret_cast<char*>(heap.get()), kHeapBytes};
    config.regions.of[1] = {reinterpret_cast<char*>(data.get()), kDataBytes};
    config.token = kToken;
    config.control_inbox = &control_inbox;
    config.addresses = &addresses;
    config.n_pes = kPes;
    config.job.address_blob_of = address_blob_of;
    config.job.lost = lost;
    config.job.notify = notify;
    config.network.stream_of = stream_of;
    config.network.own_address_blob = own_address_blob;
    std::map<std::pair<uint32_t, int>, RailWatermarks> delivered;
    of_stream_sets = &delivered;
    config.network.watermarks_of = [](void*, uint32_t stream_set, int pe) {
        return &(*of_stream_sets)[{stream_set, pe}];
    };
    config.network.on_heartbeat = [](void*, const Header&, const char*, size_t) {};
    config.network.owner = &asked;
    const auto asks = input.take<uint8_t>();
    config.is_native = asks & 32;
    config.n_rails = asks & 64 ? kRails : 1;
    static std::atomic<uint32_t> lost_rails;
    lost_rails = 0;
    config.job.rail_lost = [](int rail, int, Loss, const char*) { lost_rails |= 1u << rail; };
    ChannelConfig of_second = config;
    of_second.rail = config.n_rails - 1;
    Channel* on_rail[kRails];
    const std::unique_ptr<RetransmittingTransport> retransmitting =
        asks & 128 && config.n_rails > 1 ? keep_messages(&transport, &lost_rails, on_rail, &config, &of_second)
                                         : nullptr;
    Channel channel(config, 0), second(of_second, 0);
    on_rail[0] = &channel;
    on_rail[1] = &second;
    Channel* const channels[kRails] = {&channel, &second};
    if (config.n_rails > 1)
        for (Channel* const each : channels) each->set_rails(channels);
    Program program(channel, asks);
    asked = &program;
    try {
        uint64_t behind[kRails] = {};
        while (!input.has_ended())
            give_message(input, channels, retransmitting.get(), config.n_rails, transport, behind);
    } catch (const Refused&) {
    }
    progress(&transport, 0);  // what was under way still comes
}

}  // namespace
}  // namespace fabric
}  // namespace heddle

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    heddle::fabric::run(data, size);
    return 0;
}
