#include "fabric/multirail/rail_scheduler.h"

#include "fabric/endpoint/channel.h"
#include "fabric/endpoint/stream_set.h"
#include "os/clock.h"
#include "progress/wait_policy.h"

namespace heddle::fabric {

namespace {
constexpr const char* kRailSwitch = "a change of rails";
constexpr uint64_t kMaxUnknownBytes = 1024 * 1024;
}  // namespace

void Load::post(const Stream& stream, size_t bytes) {
    larges_.push_back({stream.position(), stream.returns(), bytes});
    larges_bytes_ += bytes;
}

// Rates are those of times in which there was a message's worth under way all along; the newest counts as much as all
// before.
void Load::look(const Stream& stream, uint64_t now_ns) {
    constexpr uint64_t kWindowNs = 2000000;
    while (!larges_.empty() && stream.is_complete(larges_.front().position) &&
           stream.has_returned(larges_.front().returns)) {
        larges_done_ += larges_.front().bytes;
        larges_.pop_front();
    }
    const uint64_t done = stream.acked() + larges_done_;
    HEDDLE_INVARIANT(larges_done_ <= larges_bytes_);
    HEDDLE_INVARIANT(done <= stream.position() + larges_bytes_);  // what is under way is not negative
    HEDDLE_INVARIANT(done_then_ <= done);
    under_way_ = stream.position() + larges_bytes_ - done;
    if (under_way_ < kMessageBytes || since_ns_ == 0) {
        since_ns_ = under_way_ < kMessageBytes ? 0 : now_ns;
        done_then_ = done;
    } else if (now_ns - since_ns_ >= kWindowNs && done != done_then_) {
        const double rate = static_cast<double>(done - done_then_) / static_cast<double>(now_ns - since_ns_);
        rate_ = rate_ == 0 ? rate : (rate_ + rate) / 2;
        since_ns_ = now_ns;
        done_then_ = done;
    }
}

RailScheduler::RailScheduler(StreamSet& stream_set, int pe, RailScheduler* behind)
    : next(behind),
      stream_set_(stream_set),
      pe_(pe),
      loads_(static_cast<size_t>(stream_set.n_rails)),
      current_(stream_set.home_rail) {
    // The producer's: others ask `on`.
    stream_set.streams[pe].store(&open(current_), std::memory_order_relaxed);
}

Stream& RailScheduler::open(int rail) {
    HEDDLE_INVARIANT(rail >= 0 && rail < stream_set_.n_rails);
    if (Stream* const stream = streams_[rail].load(std::memory_order_relaxed))
        return *stream;
    Stream& stream = stream_set_.add_stream(rail, pe_);
    stream.rails = this;
    streams_[rail].store(&stream, std::memory_order_release);  // pairs with RailScheduler::on
    return stream;
}

// The rail that is expected to finish the next message or piece first: (bytes in flight + one piece) / measured rate.
// -1 when every ring is full. While the rate of some rail is unknown: the rail with the fewest bytes in flight, and at
// most kMaxUnknownBytes on each rail.
int RailScheduler::find_fastest() {
    const uint64_t now_ns = os::now_ns();
    bool known = true;
    for (int rail = 0; rail < stream_set_.n_rails; ++rail) {
        if (const Stream* const stream = streams_[rail].load(std::memory_order_relaxed))
            load_of(rail).look(*stream, now_ns);
        known &= load_of(rail).rate() != 0 || stream_set_.channels[rail]->is_lost();
    }
    int best = -1;
    double least = 0;
    for (int i = 1; i <= stream_set_.n_rails; ++i) {  // of those that are as quick the one behind the current one
        const int rail = (current_ + i) % stream_set_.n_rails;
        const Load& load = load_of(rail);
        const Stream* const stream = streams_[rail].load(std::memory_order_relaxed);
        if (stream_set_.channels[rail]->is_lost() ||
            (stream && (!stream->has_space() || (!known && load.under_way() > kMaxUnknownBytes))))
            continue;
        const auto bytes = static_cast<double>(load.under_way());
        const double cost = known ? (bytes + kMaxPiece) / load.rate() : bytes;
        if (best < 0 || cost < least) {
            least = cost;
            best = rail;
        }
    }
    return best;
}

int RailScheduler::wait_for_fastest(const char* function) {
    int rail = find_fastest();
    if (rail < 0) {
        stream_set_.all_to(pe_, [](Stream& stream) { stream.flush(); });
        progress::wait_for_stores(function, this, [&] { return (rail = find_fastest()) >= 0; });
    }
    return rail;
}

void RailScheduler::posted(const Stream& stream, size_t bytes) {
    for (int rail = 0; rail < stream_set_.n_rails; ++rail)
        if (streams_[rail].load(std::memory_order_relaxed) == &stream)
            load_of(rail).post(stream, bytes);
}

// Not reentrant, hence switching_: changing the rail publishes kAfter records, which may fill a message and come here.
void RailScheduler::on_message_full() {
    if (switching_ || stream_set_.spread == Spread::kOneRail)
        return;
    const int rail = wait_for_fastest(kRailSwitch);
    if (rail == current_)
        return;
    HEDDLE_INVARIANT(!switching_);
    switching_ = true;
    Stream& stream = open(rail);
    if (stream_set_.spread == Spread::kInOrder)
        mark();
    order_after_marks(kRailSwitch, rail);
    current_ = rail;
    stream_set_.streams[pe_].store(&stream, std::memory_order_relaxed);  // as above
    switching_ = false;
}

Stream& RailScheduler::fastest(const char* function) {
    const int rail = stream_set_.spread == Spread::kAnyOrder ? wait_for_fastest(function) : current_;
    Stream& stream = open(rail);
    order_after_marks(function, rail);
    return stream;
}

void RailScheduler::mark() {
    ++marks_;
    for (int rail = 0; rail < stream_set_.n_rails; ++rail)
        if (const Stream* const stream = streams_[rail].load(std::memory_order_relaxed))
            mark_[rail] = stream->position();
}

// What the target of the stream on `rail` was told to wait for is at most what was marked.
void RailScheduler::check_marks(int rail) const {
    HEDDLE_INVARIANT(ordered_after_[rail] <= marks_);
    for (int other = 0; other < stream_set_.n_rails; ++other) {
        const Stream* const before = streams_[other].load(std::memory_order_relaxed);
        HEDDLE_INVARIANT(announced_[rail][other] <= mark_[other]);
        HEDDLE_INVARIANT(!before || mark_[other] <= before->position());
        HEDDLE_INVARIANT(other != rail || announced_[rail][other] == 0);  // a stream never waits for itself
    }
}

// A native put has no position: what the target counts does not cover it, so another rail waits for it.
void RailScheduler::order_after_marks(const char* function, int rail) {
    if (ordered_after_[rail] == marks_)
        return;
    ordered_after_[rail] = marks_;
    Stream& stream = *streams_[rail].load(std::memory_order_relaxed);
    for (int other = 0; other < stream_set_.n_rails; ++other) {
        Stream* const before = other == rail ? nullptr : streams_[other].load(std::memory_order_relaxed);
        if (!before)
            continue;
        before->wait_for_natives(function);
        if (mark_[other] <= announced_[rail][other] || before->is_complete(mark_[other]))
            continue;
        announced_[rail][other] = mark_[other];
        char* const at = stream.reserve(function, record::kMaxShort);
        stream.publish(record::after(at, static_cast<unsigned>(other), mark_[other]));
    }
    stream.order(function);
    check_marks(rail);
}

void RailScheduler::fence(const char* function) {
    mark();
    const bool was_switching = switching_;
    switching_ = true;
    order_after_marks(function, current_);
    switching_ = was_switching;
}

}  // namespace heddle::fabric
