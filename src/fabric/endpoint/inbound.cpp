#include "fabric/endpoint/inbound.h"

#include "fabric/endpoint/channel.h"
#include "fabric/endpoint/stream.h"
#include "fabric/protocol/untorn.h"

#include <heddle/hot_path.h>
#include <algorithm>
#include <cstdlib>
#include <new>

namespace heddle::fabric {

namespace {

constexpr size_t kReplyBytes = kMessageBytes;  // gathered before a reply leaves
// A message leaves below the window's end, and all of it was in the ring: what is kept here has a bound.
constexpr uint64_t kFurthestAhead = kWindow + kMaxRing;

}  // namespace

// The transport is closed: nothing comes for what is not complete.
Inbound::~Inbound() {
    for (Large* large : larges_) delete large;
    free(replies_data_);
}

// As the picture in the header has it; not while records are being applied.
void Inbound::check_positions() const {
    HEDDLE_INVARIANT_MSG(acked_ <= complete() && complete() <= applied_, "acked %#zx, complete %#zx, applied %#zx",
                         size_t{acked_}, size_t{complete()}, size_t{applied_});
    HEDDLE_INVARIANT(std::none_of(held_.begin(), held_.end(), [](const auto& one) { return one.second.empty(); }));
    HEDDLE_INVARIANT(std::all_of(larges_.begin(), larges_.end(), [&](const Large* large) {
        return large->inbound == this && (!large->to || large->position < applied_);
    }));
}

uint64_t Inbound::ack_position() {
    HEDDLE_INVARIANT(acked_ <= complete());  // an ack takes nothing back
    HEDDLE_FENCE(__ATOMIC_RELEASE);          // what was applied is seen before what its sender does behind the ack
    return acked_ = complete();
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
        channel_.protocol_error(pe_, "records that have been sent before");
    if (position - applied_ > kFurthestAhead)
        channel_.protocol_error(pe_, "records further ahead than its window lets it send");
    if (position == applied_ && held_.empty())
        take_records(position, records, bytes);
    else
        hold(position, records, bytes);
    apply_held();
    channel_.queue(this);
}

void Inbound::hold(uint64_t position, const char* records, size_t bytes) {
    if (!held_.try_emplace(position, records, records + bytes).second)
        channel_.protocol_error(pe_, "records that have been sent before");
}

// Applies records that begin at applied_; what has to wait is held.
void Inbound::take_records(uint64_t position, const char* records, size_t bytes) {
    HEDDLE_INVARIANT(position == applied_);                   // records are applied in order, each once
    HEDDLE_INVARIANT(replies_count_ == 0 && !replies_data_);  // replies leave with the records that ask for them
    base_ = position;
    delivered_control_ = false;
    const Applied applied = apply(records, bytes, channel_.regions(), *this);
    if (applied.wrong)
        channel_.protocol_error(pe_, applied.wrong);
    HEDDLE_INVARIANT(applied.bytes <= bytes && applied.bytes % record::kWord == 0);
    applied_ = position + applied.bytes;
    if (applied.bytes < bytes)
        hold(applied_, records + applied.bytes, bytes - applied.bytes);
    send_replies();
}

// Applies what was held and need not be any longer.
void Inbound::apply_held() {
    for (;;) {
        const auto held = held_.extract(applied_);
        if (held.empty())
            return;
        take_records(held.key(), held.mapped().data(), held.mapped().size());
        if (applied_ == held.key())
            return;  // it waits for what is not complete
    }
}

void Inbound::reply(const char* data, size_t bytes) {
    if (bytes >= kLargeBytes) {
        send_replies();
        channel_.count_large(1);
        channel_.send_message(pe_, LargeReplyHeader{.number = replies_++, .stream_set = stream_set_}, data, bytes, true,
                              on_large_reply_sent, &channel_);
        return;
    }
    const size_t padded = record::padded(bytes);
    if (replies_data_ && replies_bytes_ + padded > kReplyBytes)
        send_replies();
    if (!replies_data_)
        replies_data_ = static_cast<char*>(malloc(kReplyBytes));
    if (!replies_data_)
        channel_.protocol_error(pe_, "no memory for a reply");
    load_untorn(replies_data_ + replies_bytes_, data, bytes);
    memset(replies_data_ + replies_bytes_ + bytes, 0, padded - bytes);
    replies_bytes_ += padded;
    HEDDLE_INVARIANT(replies_bytes_ <= kReplyBytes);
    ++replies_count_;
}

void Inbound::send_replies() {
    if (replies_count_ == 0)
        return;
    char* const data = replies_data_;
    const uint64_t acked = ack_position();
    channel_.send_message(
        pe_, ReplyHeader{.first = replies_, .acked = acked, .count = replies_count_, .stream_set = stream_set_}, data,
        replies_bytes_, false, on_reply_sent, data);
    replies_ += replies_count_;
    replies_data_ = nullptr;
    replies_bytes_ = 0;
    replies_count_ = 0;
}

void Inbound::on_large_reply_sent(void* channel) {
    static_cast<Channel*>(channel)->count_large(-1);
}

void Inbound::on_reply_sent(void* data) {
    free(data);
}

// --- Large data: its record tells where it goes, its announcement that it is there to be fetched. Either may be first.

Inbound::Large& Inbound::large_at(uint64_t position) {
    for (Large* large : larges_)
        if (large->position == position)
            return *large;
    channel_.count_large(1);
    auto* large = new Large{this, position, nullptr, 0, nullptr};
    larges_.push_back(large);
    return *large;
}

void Inbound::expect_large(size_t at, char* to, size_t bytes) {
    Large& large = large_at(base_ + at);
    if (large.arrival && large.bytes != bytes)
        channel_.protocol_error(pe_, "large data of another size than its record says");
    HEDDLE_INVARIANT(!large.to);  // a record is applied once
    large.to = to;
    large.bytes = bytes;
    start(large);
}

void Inbound::on_large(uint64_t position, size_t bytes, Arrival* arrival) {
    if (position > applied_ && position - applied_ > kFurthestAhead)
        channel_.protocol_error(pe_, "large data further ahead than its window lets it send");
    Large& large = large_at(position);
    if (large.arrival || (large.to && large.bytes != bytes) || (!large.to && position < applied_))
        channel_.protocol_error(pe_, "large data that no record asked for");
    large.bytes = bytes;
    large.arrival = arrival;
    start(large);
}

void Inbound::start(Large& large) {
    if (large.to && large.arrival)
        channel_.receive(pe_, large.arrival, large.to, large.bytes, on_large_done, &large);
}

void Inbound::on_large_done(void* argument) {
    auto* large = static_cast<Large*>(argument);
    Inbound& inbound = *large->inbound;
    HEDDLE_INVARIANT(large->to);  // what has arrived had a place
    const size_t erased = std::erase(inbound.larges_, large);
    HEDDLE_INVARIANT(erased == 1);  // large data arrives once
    inbound.channel_.count_large(-1);
    inbound.channel_.count_arrived(large->bytes);
    delete large;
    inbound.channel_.queue(&inbound);
}

void Inbound::control(const ControlKey& key, const char* data, size_t bytes) {
    delivered_control_ = true;
    if (!channel_.config().control_inbox->deliver(key, pe_, data, bytes))
        channel_.protocol_error(pe_, "more control messages than may wait for the collectives of its teams");
}

bool Inbound::is_complete(size_t at) {
    return std::none_of(larges_.begin(), larges_.end(),
                        [&](const Large* large) { return large->to && large->position < base_ + at; });
}

bool Inbound::is_after(unsigned rail, uint64_t position) {
    const int mine = channel_.config().rail, other = static_cast<int>(rail);
    if (!watermarks_ || other == mine || other >= channel_.config().n_rails)
        channel_.protocol_error(pe_, "records that wait for a rail that is none");
    if (watermarks_->is_complete(mine, other, position))
        return true;
    channel_.wait_for_others(this);
    return false;
}

void Inbound::progress() {
    apply_held();
    check_positions();
    if (watermarks_)
        watermarks_->advance(channel_.config().rail, complete(), [&](int rail) { channel_.wake(rail); });
    if (!has_ack())
        return;
    if (delivered_control_)
        channel_.delay_ack(*this);
    else
        channel_.ack(*this);
}

}  // namespace heddle::fabric
