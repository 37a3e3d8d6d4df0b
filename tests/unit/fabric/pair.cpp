#include "unit/fabric/pair.h"

#include "os/asymmetric_fence.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace heddle::fabric {

namespace {

Pe* world[2];  // for cards
Pair* current;

size_t card_of(int pe, char* card, char*, size_t) {
    return fake_api.card(&world[pe]->transport(), card);
}

void lost(int pe, const char* reason) {
    if (current && current->lost)
        return current->lost(pe, reason);
    fprintf(stderr, "PE %d is lost: %s\n", pe, reason);
    abort();
}

void landed(void*) {}

Wire& wire_of(void* owner) {
    return *static_cast<Pe*>(owner)->wire;
}

void arrived(void* owner, int, const void* bytes, const char* body, size_t body_bytes) {
    Header header;
    memcpy(&header, bytes, sizeof header);
    wire_of(owner).arrived(header, body, body_bytes);
}

void announced(void* owner, int, const void* bytes, size_t body_bytes, Arrival* arrival) {
    Header header;
    memcpy(&header, bytes, sizeof header);
    wire_of(owner).announced(header, body_bytes, arrival);
}

void failed(void*, int, int pe, const char* reason) {
    lost(pe, reason);
}

void heard(void* owner, const Header& header, const char* body, size_t bytes) {
    if (Pulse* pulse = static_cast<Pe*>(owner)->pulse)
        pulse->heard(header, body, bytes);
}

bool poll_current() {
    return current->instead ? current->instead() : current->poll();
}

}  // namespace

Pe::Pe(int number, size_t heap_bytes, const Habits& habits, size_t full_bytes)
    : number_(number), heap_(heap_bytes / sizeof(uint64_t)) {
    world[number] = this;
    char error[1];
    fake_habits = habits;
    fake_habits.seed = habits.seed * 2 + static_cast<uint64_t>(number);
    const Options options = {
        "", "", 1, kMessageBytes, habits.native ? Protocol::kNative : Protocol::kBatch, {{heap(), heap_bytes}, {}}};
    fake_api.open(options, {this, arrived, announced, failed}, &transport_, error, sizeof error);
    surroundings_.api = &fake_api;
    surroundings_.transport = transport_;
    surroundings_.regions.of[0] = {heap(), heap_bytes};
    surroundings_.token = kToken;
    surroundings_.mailbox = &mailbox;
    surroundings_.pe = number;
    surroundings_.n_pes = 2;
    surroundings_.card_of = card_of;
    surroundings_.lost = lost;
    surroundings_.landed = landed;
    surroundings_.stream_of = stream_of;
    surroundings_.owner = this;
    surroundings_.heard = heard;
    surroundings_.full_bytes = full_bytes;
    surroundings_.ring = {1 - number, 1 - number};
    surroundings_.is_native = habits.native;
    wire = std::make_unique<Wire>(surroundings_, 0);
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
        producers_[lane].lane = lane;
        streams_.push_back(std::make_unique<Stream>(*wire, producers_[lane], 1 - number));
    }
}

Pe::~Pe() {
    fake_api.close(transport_);
}

Stream* Pe::stream_of(void* owner, uint32_t lane, int pe) {
    Pe* const me = static_cast<Pe*>(owner);
    return lane < kLanes && pe == 1 - me->number_ ? me->streams_[lane].get() : nullptr;
}

size_t Pe::sent(MessageKind kind) {
    return static_cast<size_t>(std::count_if(cable().sent.begin(), cable().sent.end(),
                                             [&](const Header& header) { return header.kind == kind; }));
}

void Pe::arrives(Header header, const char* body, size_t bytes) {
    header.token = kToken;
    header.pe = 1 - number_;
    wire->arrived(header, body, bytes);
}

Pair::Pair(const Habits& habits, size_t heap_bytes, size_t full_bytes) {
    if (!os::prepare_heavy_fence())
        abort();
    for (int number = 0; number < 2; ++number)
        pes_[number] = std::make_unique<Pe>(number, heap_bytes, habits, full_bytes);
    current = this;
}

Pair::~Pair() {
    current = nullptr;
}

bool Pair::poll() {
    const bool first = pes_[0]->wire->poll();
    return pes_[1]->wire->poll() || first;
}

void Pair::settle() {
    for (int still = 0; still < 3;) {
        const bool moved = poll();
        still = moved || !pes_[0]->transport().is_empty() || !pes_[1]->transport().is_empty() ? 0 : still + 1;
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
