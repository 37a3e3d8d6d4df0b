#include "unit/fabric/pair.h"

#include "fabric/card.h"
#include "os/asymmetric_fence.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace heddle::fabric {

namespace {

Pe* world[2];  // for cards
Pair* current;

size_t card_of(int pe, char* card, char*, size_t) {
    return world[pe]->card(card);
}

void lost(int pe, Loss loss, const char* reason) {
    if (current && current->lost)
        return current->lost(pe, loss == Loss::kLeft ? std::string("left, ") + reason : reason);
    fprintf(stderr, "PE %d is lost: %s\n", pe, reason);
    abort();
}

void landed(void*) {}

bool poll_current() {
    return current->instead ? current->instead() : current->poll();
}

}  // namespace

// What wires and transports call: their owner is a rail of a PE.
struct PairEvents {
    static Pe::Rail& rail_of(void* owner) { return *static_cast<Pe::Rail*>(owner); }
    static void arrived(void* owner, int, const void* bytes, const char* body, size_t body_bytes) {
        Header header;
        memcpy(&header, bytes, sizeof header);
        rail_of(owner).wire->arrived(header, body, body_bytes);
    }
    static void announced(void* owner, int, const void* bytes, size_t body_bytes, Arrival* arrival) {
        Header header;
        memcpy(&header, bytes, sizeof header);
        rail_of(owner).wire->announced(header, body_bytes, arrival);
    }
    static void failed(void*, int, int pe, const char* reason) { lost(pe, Loss::kBroken, reason); }
    static void heard(void* owner, const Header& header, const char* body, size_t bytes) {
        if (Pulse* pulse = rail_of(owner).pe->pulse)
            pulse->heard(header, body, bytes);
    }
    static Stream* stream_of(void* owner, uint32_t lane, int pe) {
        const Pe::Rail& rail = rail_of(owner);
        return lane < kLanes && pe == 1 - rail.pe->number_ ? rail.pe->lanes_[lane].find(pe, rail.surroundings.rail)
                                                           : nullptr;
    }
    static Delivered* delivered_of(void* owner, uint32_t lane, int) { return &rail_of(owner).pe->delivered_[lane]; }
    static size_t own_card(void* owner, char* card) { return rail_of(owner).pe->card(card); }
};

Pe::Pe(int number, size_t heap_bytes, const Habits& habits, size_t full_bytes, int n_rails, Spread spread, bool keeps)
    : number_(number), n_rails_(n_rails), heap_(heap_bytes / sizeof(uint64_t)) {
    world[number] = this;
    for (int rail = 0; rail < n_rails; ++rail) open_rail(rail, heap_bytes, habits, full_bytes, keeps);
    for (int rail = 0; rail < n_rails && n_rails > 1; ++rail) wires_[rail]->set_rails(wires_);
    for (uint32_t i = 0; i < kLanes; ++i) {
        lanes_[i].producer.lane = i;
        lanes_[i].spread = spread;
        lanes_[i].n_rails = n_rails;
        lanes_[i].home_rail = static_cast<int>(i) % n_rails;
        std::copy_n(wires_, n_rails, lanes_[i].wires);
        lanes_[i].streams = streams_[i];
        lanes_[i].rails = rails_to_[i];
    }
}

void Pe::open_rail(int number, size_t heap_bytes, const Habits& habits, size_t full_bytes, bool keeps) {
    Rail& rail = rails_[number];
    rail.pe = this;
    char error[1];
    fake_habits = habits;
    fake_habits.seed = (habits.seed * kMostRails + static_cast<uint64_t>(number)) * 2 + static_cast<uint64_t>(number_);
    const Options options = {
        "", "", 1, kMessageBytes, habits.native ? Protocol::kNative : Protocol::kBatch, {{heap(), heap_bytes}, {}}};
    Surroundings& surroundings = rail.surroundings;
    fake_api.open(options, {&rail, PairEvents::arrived, PairEvents::announced, PairEvents::failed},
                  &surroundings.transport, error, sizeof error);
    surroundings.api = &fake_api;
    surroundings.regions.of[0] = {heap(), heap_bytes};
    surroundings.token = kToken;
    surroundings.mailbox = &mailbox;
    surroundings.pe = number_;
    surroundings.n_pes = 2;
    surroundings.rail = number;
    surroundings.n_rails = n_rails_;
    surroundings.card_of = card_of;
    surroundings.own_card = PairEvents::own_card;
    surroundings.lost = lost;
    surroundings.rail_lost = [](int lost_rail, int from, Loss, const char*) { world[1 - from]->lose(lost_rail); };
    surroundings.lost_rails = keeps ? &lost_rails : nullptr;
    surroundings.landed = landed;
    surroundings.stream_of = PairEvents::stream_of;
    surroundings.delivered_of = PairEvents::delivered_of;
    surroundings.owner = &rail;
    surroundings.heard = PairEvents::heard;
    surroundings.full_bytes = full_bytes;
    surroundings.ring = {1 - number_, 1 - number_};
    surroundings.is_native = habits.native;
    rail.wire = std::make_unique<Wire>(surroundings, 0);
    wires_[number] = rail.wire.get();
}

Pe::~Pe() {
    for (int rail = 0; rail < n_rails_; ++rail) fake_api.close(rails_[rail].surroundings.transport);
    for (Lane& lane : lanes_) {
        for (Stream* stream = lane.used.load(std::memory_order_relaxed); stream;)
            delete std::exchange(stream, stream->next_of_lane);
        for (Rails* rails = lane.all_rails; rails;) delete std::exchange(rails, rails->next);
    }
}

size_t Pe::card(char* card) const {
    size_t bytes = 0;
    for (int rail = 0; rail < n_rails_; ++rail) add_card(fake_api, rails_[rail].surroundings.transport, card, &bytes);
    return bytes;
}

size_t Pe::sent(MessageKind kind, int rail) {
    return static_cast<size_t>(std::count_if(cable(rail).sent.begin(), cable(rail).sent.end(),
                                             [&](const Header& header) { return header.kind == kind; }));
}

void Pe::arrives(Header header, const char* body, size_t bytes) {
    header.token = kToken;
    header.pe = 1 - number_;
    wire().arrived(header, body, bytes);
}

bool Pe::poll() {
    bool moved = false;
    for (int rail = 0; rail < n_rails_; ++rail) moved |= wires_[rail]->poll();
    return moved;
}

bool Pe::is_empty() {
    for (int rail = 0; rail < n_rails_; ++rail)
        if (!transport(rail).is_empty())
            return false;
    return true;
}

bool Pe::is_quiet(uint32_t number) {
    return lanes_[number].all([](Stream& stream) { return stream.is_quiet(); });
}

Pair::Pair(const Habits& habits, size_t heap_bytes, size_t full_bytes, int n_rails, Spread spread, bool keeps) {
    if (!os::prepare_heavy_fence())
        abort();
    for (int number = 0; number < 2; ++number)
        pes_[number] = std::make_unique<Pe>(number, heap_bytes, habits, full_bytes, n_rails, spread, keeps);
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
    publish(stream, record::kMostShort, [&](char* at) { return record::get(at, {offset}, bytes); });
}

void fetch_add(Stream& stream, void* to, uint64_t offset, uint64_t operand) {
    stream.expect_return("test", to, sizeof operand);
    publish(stream, record::kMostShort,
            [&](char* at) { return record::atomic(at, {offset}, HEDDLE_AMO_ADD, operand, 0, sizeof operand, true); });
}

}  // namespace heddle::fabric
