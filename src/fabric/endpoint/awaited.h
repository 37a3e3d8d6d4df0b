// Awaited: what a quiet waits for. The positions of all streams are read ahead of one wait: what threads go on to post
// is not waited for, and one round trip is enough for all streams. Otherwise threads that put and quiet in turns would
// wait for each other's next puts, and little would be under way at once (docs/decisions/0036).
//
// Threads: an object belongs to the thread, or fiber, that waits.
#pragma once

#include "fabric/endpoint/stream.h"
#include "progress/wait_policy.h"

#include <cstddef>
#include <cstdint>

namespace heddle::fabric {

class Awaited {
  public:
    static constexpr size_t kMost = 64;  // streams of one wait

    // function: for the message that shows where a PE waits.
    explicit Awaited(const char* function) : function_(function) {}
    Awaited(const Awaited&) = delete;
    Awaited& operator=(const Awaited&) = delete;

    // What has been posted to the stream so far. Where kMost streams are awaited, these are waited for first.
    void add(const Stream& stream) {
        if (count_ == kMost)
            wait();
        marks_[count_] = {&stream, stream.published(), stream.published_returns()};
        count_ += !marks_[count_].is_over();
    }
    // Returns when all is complete that was added.
    void wait() {
        if (count_ == 0)
            return;
        progress::wait_for_stores(function_, marks_[0].stream, [this] {
            while (count_ != 0 && marks_[count_ - 1].is_over()) --count_;
            return count_ == 0;
        });
    }

  private:
    struct Mark {
        const Stream* stream;
        uint64_t position, returns;
        bool is_over() const { return stream->is_complete(position) && stream->has_returned(returns); }
    };

    const char* const function_;
    size_t count_ = 0;
    Mark marks_[kMost];  // the first count_ of them
};

// each(visit) calls visit for every stream. Waits until all is complete that has been posted to these streams.
template <class Each>
void wait_until_quiet(const char* function, Each each) {
    each([](Stream& stream) {
        if (!stream.is_quiet() && !stream.is_flushed())
            stream.flush();
    });
    Awaited awaited(function);
    each([&](const Stream& stream) { awaited.add(stream); });
    awaited.wait();
}

}  // namespace heddle::fabric
