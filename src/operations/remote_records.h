// Data between nodes that is too large for one record, and too short for a rendezvous: a few records that leave
// together (docs/decisions/0055). Threads: as the stream's.
#pragma once

#include "fabric/endpoint/stream.h"
#include "fabric/protocol/record.h"
#include "progress/wait_policy.h"

#include <algorithm>
#include <cstddef>

namespace heddle::operations {

// Data of so many bytes goes by rendezvous where there is no RDMA. Two or three records are there sooner.
constexpr size_t kRendezvousBytes = 80 * 1024;
static_assert(kRendezvousBytes > fabric::kLargeBytes);

// Of the ring, for the heads of some records, and a signal or a control message behind them.
constexpr size_t kRoomForHeads = 256;

// What the caller publishes next on the stream.
enum class Next { kNothing, kMore };

// Calls visit(at, bytes, next) for each record of so many bytes. They are of one size, so that the first is applied
// while the last is on its way. last: what comes next when all of them are published.
template <class Visit>
void for_records(size_t bytes, Next last, Visit visit) {
    constexpr size_t kMost = fabric::kLargeBytes - fabric::record::kWord;  // even padded, less than large
    const size_t records = bytes < fabric::kLargeBytes ? 1 : (bytes + kMost - 1) / kMost;
    const size_t each = records == 1 ? bytes : fabric::record::padded((bytes + records - 1) / records);
    for (size_t at = 0; at < bytes; at += each)
        visit(at, std::min(each, bytes - at), at + each < bytes ? Next::kMore : last);
}

// Returns when the sources of what was posted to the stream may be reused.
inline void wait_until_local(const char* function, fabric::Stream& stream) {
    if (stream.is_local())
        return;
    stream.flush();
    progress::wait_for_stores(function, &stream, [&] { return stream.is_local(); });
}

// Of several rails the next record may take another one: each record leaves by itself.
inline void publish(fabric::Stream& stream, const char* end, Next next) {
    if (next == Next::kMore && !stream.rails)
        stream.publish_ahead(end);
    else
        stream.publish(end);
}

}  // namespace heddle::operations
