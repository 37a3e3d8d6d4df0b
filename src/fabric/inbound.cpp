#include "fabric/inbound.h"

#include "fabric/stream.h"
#include "fabric/wire.h"

#include <heddle/hot_path.h>
#include <algorithm>
#include <cstdlib>
#include <new>

namespace heddle::fabric {

namespace {

constexpr size_t kReplyBytes = kMessageBytes;  // gathered before a reply departs
// A message departs below the window's end, and all of it was in the ring: what is kept here has a bound.
constexpr uint64_t kFurthestAhead = kWindow + kMostRing;

// What a load by a neighbour would give: single values untorn.
void fetch(char* to, const char* from, size_t bytes) {
    if (bytes == 8 && reinterpret_cast<uintptr_t>(from) % 8 == 0)
        return heddle_load(to, from, 8);
    if (bytes == 4 && reinterpret_cast<uintptr_t>(from) % 4 == 0)
        return heddle_load(to, from, 4);
    if (bytes == 2 && reinterpret_cast<uintptr_t>(from) % 2 == 0)
        return heddle_load(to, from, 2);
    memcpy(to, from, bytes);
}

}  // namespace

// The transport is closed: nothing comes for what is not complete.
Inbound::~Inbound() {
    for (Large* large : larges_) delete large;
    free(replies_data_);
}

uint64_t Inbound::complete() const {
    uint64_t position = applied_;
    for (const Large* large : larges_)
        if (large->to)  // those announced ahead of their record lie beyond applied_
            position = std::min(position, large->position);
    return position;
}

void Inbound::on_records(uint64_t position, const char* records, size_t bytes) {
    if (position < applied_ || position % record::kWord != 0 || bytes == 0)
        wire_.broken(pe_, "records that have been sent before");
    if (position - applied_ > kFurthestAhead)
        wire_.broken(pe_, "records further ahead than its window lets it send");
    if (position == applied_ && held_.empty())
        take(position, records, bytes);
    else
        held_.push_back({position, {records, records + bytes}});
    go_on();
    wire_.queue(this);
}

// Applies records that begin at applied_; what has to wait is held.
void Inbound::take(uint64_t position, const char* records, size_t bytes) {
    base_ = position;
    applied_ = position;
    brought_letter_ = false;
    const Applied applied = apply(records, bytes, wire_.regions(), *this);
    if (applied.wrong)
        wire_.broken(pe_, applied.wrong);
    applied_ = position + applied.bytes;
    if (applied.bytes < bytes)
        held_.insert(held_.begin(), {applied_, {records + applied.bytes, records + bytes}});
    send_replies();
}

// Applies what was held and need not be any longer.
void Inbound::go_on() {
    for (;;) {
        const auto found =
            std::find_if(held_.begin(), held_.end(), [&](const Held& one) { return one.position == applied_; });
        if (found == held_.end())
            return;
        const Held held = std::move(*found);
        held_.erase(found);
        take(held.position, held.records.data(), held.records.size());
        if (applied_ == held.position)
            return;  // it waits for what is not complete
    }
}

void Inbound::reply(const char* data, size_t bytes) {
    if (bytes >= kLargeBytes) {
        send_replies();
        wire_.send_message(pe_, {.position = replies_++, .kind = MessageKind::kLargeReply, .lane = lane_}, data, bytes,
                           true, nullptr, nullptr);
        return;
    }
    const size_t padded = record::padded(bytes);
    if (replies_data_ && replies_bytes_ + padded > kReplyBytes)
        send_replies();
    if (!replies_data_)
        replies_data_ = static_cast<char*>(malloc(kReplyBytes));
    if (!replies_data_)
        wire_.broken(pe_, "no memory for a reply");
    fetch(replies_data_ + replies_bytes_, data, bytes);
    memset(replies_data_ + replies_bytes_ + bytes, 0, padded - bytes);
    replies_bytes_ += padded;
    ++replies_count_;
}

void Inbound::send_replies() {
    if (replies_count_ == 0)
        return;
    char* const data = replies_data_;
    told_ = complete();
    wire_.send_message(
        pe_,
        {.position = replies_, .count = replies_count_, .kind = MessageKind::kReply, .lane = lane_, .complete = told_},
        data, replies_bytes_, false, on_reply_sent, data);
    replies_ += replies_count_;
    replies_data_ = nullptr;
    replies_bytes_ = 0;
    replies_count_ = 0;
}

void Inbound::on_reply_sent(void* data) {
    free(data);
}

// --- Large data: its record tells where it goes, its announcement that it is there to be fetched. Either may be first.

Inbound::Large& Inbound::large_at(uint64_t position) {
    for (Large* large : larges_)
        if (large->position == position)
            return *large;
    auto* large = new Large{this, position, nullptr, 0, nullptr, nullptr, {}};
    larges_.push_back(large);
    return *large;
}

void Inbound::expect_large(size_t at, char* to, size_t bytes) {
    Large& large = large_at(base_ + at);
    if ((large.arrival || large.body) && large.bytes != bytes)
        wire_.broken(pe_, "large data of another size than its record says");
    large.to = to;
    large.bytes = bytes;
    start(large);
}

Inbound::Large& Inbound::announced(uint64_t position, size_t bytes) {
    if (position > applied_ && position - applied_ > kFurthestAhead)
        wire_.broken(pe_, "large data further ahead than its window lets it send");
    Large& large = large_at(position);
    if (large.arrival || large.body || (large.to && large.bytes != bytes) || (!large.to && position < applied_))
        wire_.broken(pe_, "large data that no record asked for");
    large.bytes = bytes;
    return large;
}

void Inbound::on_large(uint64_t position, size_t bytes, Arrival* arrival) {
    Large& large = announced(position, bytes);
    large.arrival = arrival;
    start(large);
}

void Inbound::on_large(uint64_t position, size_t bytes, const char* body) {
    Large& large = announced(position, bytes);
    if (!large.to) {
        large.copy.assign(body, body + bytes);
        body = large.copy.data();
    }
    large.body = body;
    start(large);
}

void Inbound::start(Large& large) {
    if (!large.to || (!large.arrival && !large.body))
        return;
    if (large.arrival)
        return wire_.receive(pe_, large.arrival, large.to, large.bytes, on_large_done, &large);
    memcpy(large.to, large.body, large.bytes);
    on_large_done(&large);
}

void Inbound::on_large_done(void* argument) {
    auto* large = static_cast<Large*>(argument);
    Inbound& inbound = *large->inbound;
    std::erase(inbound.larges_, large);
    delete large;
    inbound.wire_.queue(&inbound);
}

void Inbound::letter(uint64_t key, uint32_t from, const char* data, size_t bytes) {
    brought_letter_ = true;
    wire_.surroundings().mailbox->deliver(key, from, data, bytes);
}

bool Inbound::is_complete(size_t at) {
    return std::none_of(larges_.begin(), larges_.end(),
                        [&](const Large* large) { return large->to && large->position < base_ + at; });
}

bool Inbound::is_after(unsigned rail, uint64_t position) {
    const int mine = wire_.surroundings().rail, other = static_cast<int>(rail);
    if (!delivered_ || other == mine || other >= wire_.surroundings().n_rails)
        wire_.broken(pe_, "records that wait for a rail that is none");
    if (delivered_->is_complete(mine, other, position))
        return true;
    wire_.wait_for_others(this);
    return false;
}

void Inbound::answer() {
    go_on();
    if (delivered_)
        delivered_->advance(wire_.surroundings().rail, complete(), [&](int rail) { wire_.wake(rail); });
    if (brought_letter_)
        wire_.hold_back(this);
    else
        tell();
}

void Inbound::tell() {
    if (complete() != told_)
        wire_.send_message(pe_, {.position = told(), .kind = MessageKind::kAck, .lane = lane_}, nullptr, 0, false,
                           nullptr, nullptr);
}

}  // namespace heddle::fabric
