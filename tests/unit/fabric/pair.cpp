#include "unit/fabric/pair.h"

#include "fabric/transport/address_blob.h"
#include "os/asymmetric_fence.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace heddle::fabric {

namespace {

Pe* world[2];  // for address blobs
Pair* current;

size_t address_blob_of(int pe, char* address_blob, char*, size_t) {
    return world[pe]->address_blob(address_blob);
}

void lost(int pe, Loss, const char* reason) {
    if (current && current->lost)
        return current->lost(pe, reason);
    fprintf(stderr, "PE %d is lost: %s\n", pe, reason);
    abort();
}

bool poll_current() {
    return current->instead ? current->instead() : current->poll();
}

}  // namespace

// What channels and transports call: their owner is a rail of a PE.
struct PairEvents {
    static Pe::Rail& rail_of(void* owner) { return *static_cast<Pe::Rail*>(owner); }
    static void arrived(void* owner, int, const void* bytes, const char* body, size_t body_bytes) {
        Header header;
        memcpy(&header, bytes, sizeof header);
        rail_of(owner).channel->arrived(header, body, body_bytes);
    }
    static void announced(void* owner, int, const void* bytes, size_t body_bytes, Arrival* arrival) {
        Header header;
        memcpy(&header, bytes, sizeof header);
        rail_of(owner).channel->announced(header, body_bytes, arrival);
    }
    static void arrived_on_rail(void* owner, int channel, const void* bytes, const char* body, size_t body_bytes) {
        const Pe::Rail& rail = rail_of(owner);
        if (!rail.pe->retransmitting_)
            return arrived(owner, channel, bytes, body, body_bytes);
        Header header;
        memcpy(&header, bytes, sizeof header);
        rail.pe->retransmitting_->arrived(rail.config.rail, channel, header, body, body_bytes);
    }
    static Endpoint* endpoint_of(void* owner, int, int pe) { return rail_of(owner).channel->endpoint_of(pe); }
    static void wake(void* owner, int) { rail_of(owner).channel->wake(); }
    static void failed(void*, int, int pe, const char* reason) { lost(pe, Loss::kBroken, reason); }
    static void on_left(void* owner) { rail_of(owner).pe->left.fetch_add(1, std::memory_order_relaxed); }
    static void on_heartbeat(void* owner, const Header& header, const char* body, size_t bytes) {
        if (Heartbeat* heartbeat = rail_of(owner).pe->heartbeat)
            heartbeat->on_heartbeat(header, body, bytes);
    }
    static Stream* stream_of(void* owner, uint32_t stream_set, int pe) {
        const Pe::Rail& rail = rail_of(owner);
        return stream_set < kStreamSets && pe == 1 - rail.pe->number_
                   ? rail.pe->stream_sets_[stream_set].find(pe, rail.config.rail)
                   : nullptr;
    }
    static RailWatermarks* watermarks_of(void* owner, uint32_t stream_set, int) {
        return &rail_of(owner).pe->watermarks_[stream_set];
    }
    static size_t own_address_blob(void* owner, char* address_blob) {
        return rail_of(owner).pe->address_blob(address_blob);
    }
};

Pe::Pe(int number, size_t heap_bytes, const Habits& habits, size_t full_bytes, int n_rails, Spread spread, bool keeps,
       size_t plenty)
    : ring_slab(plenty), number_(number), n_rails_(n_rails), heap_(heap_bytes / sizeof(uint64_t)) {
    world[number] = this;
    for (int rail = 0; rail < n_rails; ++rail) open_rail(rail, heap_bytes, habits, full_bytes, keeps);
    for (int rail = 0; rail < n_rails && n_rails > 1; ++rail) channels_[rail]->set_rails(channels_);
    for (uint32_t i = 0; i < kStreamSets; ++i) {
        stream_sets_[i].producer.stream_set = i;
        stream_sets_[i].producer.n_active = &stream_set_list_.n_active;
        stream_sets_[i].producer.quota.slab = &ring_slab;
        stream_sets_[i].spread = spread;
        stream_sets_[i].n_rails = n_rails;
        stream_sets_[i].home_rail = static_cast<int>(i) % n_rails;
        std::copy_n(channels_, n_rails, stream_sets_[i].channels);
        stream_sets_[i].streams = streams_[i];
        stream_sets_[i].rails = rails_to_[i];
    }
}

void Pe::open_rail(int number, size_t heap_bytes, const Habits& habits, size_t full_bytes, bool keeps) {
    Rail& rail = rails_[number];
    rail.pe = this;
    char error[1];
    fake_habits = habits;
    fake_habits.seed = (habits.seed * kMaxRails + static_cast<uint64_t>(number)) * 2 + static_cast<uint64_t>(number_);
    const Options options = {
        "", "", 1, kMessageBytes, habits.native ? Protocol::kRma : Protocol::kAm, {{heap(), heap_bytes}, {}}};
    ChannelConfig& config = rail.config;
    fake_api.open(options, {&rail, PairEvents::arrived_on_rail, PairEvents::announced, PairEvents::failed},
                  &rail.transport, error, sizeof error);
    config.api = &fake_api;
    config.transport = rail.transport;
    config.regions.of[0] = {heap(), heap_bytes};
    config.token = kToken;
    config.control_inbox = &control_inbox;
    config.addresses = &addresses;
    config.pe = number_;
    config.n_pes = 2;
    config.rail = number;
    config.n_rails = n_rails_;
    config.job.address_blob_of = address_blob_of;
    config.network.own_address_blob = PairEvents::own_address_blob;
    config.job.lost = lost;
    config.job.rail_lost = [](int lost_rail, int from, Loss, const char*) { world[1 - from]->lose(lost_rail); };
    config.lost_rails = keeps ? &lost_rails : nullptr;
    config.job.notify = [](void* pe) { static_cast<Pe*>(pe)->notices.fetch_add(1, std::memory_order_relaxed); };
    config.job.run_ready = [](void* pe) { static_cast<Pe*>(pe)->runs.fetch_add(1, std::memory_order_relaxed); };
    config.job.waiting = this;
    config.network.stream_of = PairEvents::stream_of;
    config.network.watermarks_of = PairEvents::watermarks_of;
    config.network.owner = &rail;
    config.network.on_left = PairEvents::on_left;
    config.network.polls_soon = [](void* owner) { return PairEvents::rail_of(owner).pe->polls_soon; };
    config.network.is_asleep = [](void* owner) { return PairEvents::rail_of(owner).pe->is_asleep; };
    config.policy = &policy;
    config.network.on_heartbeat = PairEvents::on_heartbeat;
    config.full_bytes = full_bytes;
    config.ring = {1 - number_, 1 - number_};
    config.is_native = habits.native;
    config.parts_large = habits.parts_large;
    if (keeps && n_rails_ > 1) {
        if (!retransmitting_)
            retransmitting_ = std::make_unique<RetransmittingTransport>(
                RetransmittingTransport::Config{.api = &fake_api,
                                                .token = kToken,
                                                .n_pes = 2,
                                                .n_rails = n_rails_,
                                                .lost_rails = &lost_rails,
                                                .rail_lost = config.job.rail_lost,
                                                .endpoint_of = PairEvents::endpoint_of,
                                                .wake = PairEvents::wake});
        config.api = &RetransmittingTransport::api();
        config.transport = retransmitting_->add_rail(
            rail.transport, {&rail, PairEvents::arrived, PairEvents::announced, PairEvents::failed});
    }
    rail.channel = std::make_unique<Channel>(config, 0);
    channels_[number] = rail.channel.get();
}

Pe::~Pe() {
    for (int rail = 0; rail < n_rails_; ++rail) fake_api.close(rails_[rail].transport);
    for (StreamSet& stream_set : stream_sets_) stream_set.delete_streams();
}

size_t Pe::address_blob(char* address_blob) const {
    size_t bytes = 0;
    for (int rail = 0; rail < n_rails_; ++rail)
        add_rail_address(fake_api, rails_[rail].transport, address_blob, &bytes);
    return bytes;
}

size_t Pe::sent(MessageKind kind, int rail) {
    return static_cast<size_t>(std::count_if(cable(rail).sent.begin(), cable(rail).sent.end(),
                                             [&](const Header& header) { return header.kind == kind; }));
}

void Pe::arrives(Header header, const char* body, size_t bytes) {
    header.token = kToken;
    header.pe = 1 - number_;
    channel().arrived(header, body, bytes);
}

bool Pe::poll() {
    bool moved = false;
    for (int rail = 0; rail < n_rails_; ++rail) moved |= channels_[rail]->poll();
    return moved;
}

bool Pe::is_empty() {
    for (int rail = 0; rail < n_rails_; ++rail)
        if (!transport(rail).is_empty())
            return false;
    return true;
}

bool Pe::knows_its_active(uint32_t number) const {
    const bool any = is_active();
    std::vector<const Stream*> active;
    stream_sets_[number].all_active([&](Stream& stream) {
        active.push_back(&stream);
        return true;
    });
    return stream_sets_[number].all([&](Stream& stream) {
        const bool is_known = any && std::find(active.begin(), active.end(), &stream) != active.end();
        return is_known || (stream.is_quiet() && stream.is_local());
    });
}

bool Pe::is_quiet(uint32_t number) {
    return stream_sets_[number].all([](Stream& stream) { return stream.is_quiet(); });
}

Pair::Pair(const Habits& habits, size_t heap_bytes, size_t full_bytes, int n_rails, Spread spread, bool keeps,
           size_t plenty) {
    if (!os::prepare_heavy_fence())
        abort();
    for (int number = 0; number < 2; ++number)
        pes_[number] = std::make_unique<Pe>(number, heap_bytes, habits, full_bytes, n_rails, spread, keeps, plenty);
    current = this;
}

Pair::~Pair() {
    current = nullptr;
}

bool Pair::poll() {
    const bool first = pes_[0]->poll();
    return pes_[1]->poll() || first;
}

void Pair::settle() {
    for (int still = 0; still < 3;) {
        const bool moved = poll();
        still = moved || !pes_[0]->is_empty() || !pes_[1]->is_empty() ? 0 : still + 1;
    }
}

Waiting::Waiting(bool (*poll)()) : before_(progress::wait_policy) {
    policy_.yield_ns = UINT64_MAX / 2;  // nobody else polls here: a wait that slept would sleep for ever
    policy_.poll = poll ? poll : poll_current;
    policy_.has_network = true;
    progress::wait_policy = &policy_;
}

Waiting::~Waiting() {
    progress::wait_policy = before_;
}

void put(Stream& stream, uint64_t offset, const void* from, size_t bytes) {
    if (bytes >= kLargeBytes && stream.is_native("test"))
        return stream.put_native("test", {offset}, static_cast<const char*>(from), bytes);
    if (bytes >= kLargeBytes)
        return stream.put_large("test", {offset}, static_cast<const char*>(from), bytes);
    publish(stream, record::put_bytes(bytes), [&](char* at) { return record::put(at, {offset}, from, bytes); });
}

void put_word(Stream& stream, uint64_t offset, uint64_t value) {
    publish(stream, 2 * record::kWord, [&](char* at) { return record::put_word(at, {offset}, value, sizeof value); });
}

void get(Stream& stream, void* to, uint64_t offset, size_t bytes) {
    stream.expect_return("test", to, bytes);
    publish(stream, record::kMaxShort, [&](char* at) { return record::get(at, {offset}, bytes); });
}

void fetch_add(Stream& stream, void* to, uint64_t offset, uint64_t operand) {
    stream.expect_return("test", to, sizeof operand);
    publish(stream, record::kMaxShort,
            [&](char* at) { return record::atomic(at, {offset}, HEDDLE_AMO_ADD, operand, 0, sizeof operand, true); });
}

}  // namespace heddle::fabric
