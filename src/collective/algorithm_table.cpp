#include "collective/algorithm_table.h"

#include "base/invariant.h"
#include "base/settings.h"
#include "team/team_segment.h"

#include <algorithm>
#include <climits>
#include <cstdint>

namespace heddle::collective {

namespace {

using enum base::CollectiveAlgorithm;

// One choice: `algorithm` for parts of at most `bytes` among at most `members`. The first row that holds is taken.
struct Row {
    int members;
    size_t bytes;
    Algorithm algorithm;
};
constexpr size_t kAny = SIZE_MAX;
constexpr int kAll = INT_MAX;
constexpr size_t kInlineSize = team::kInlineBytes, kBounceSize = team::kBounceBytes;
constexpr int kMaxRows = 4;

// Rows for members with a core each, and for members that share cores: there a barrier costs context switches, and
// copying twice is cheaper than a second barrier. Measured on a 2-core Zen 5 machine with 2 and 8 PEs.
struct Choice {
    Row alone[kMaxRows];
    Row oversubscribed[kMaxRows];
};
constexpr Choice kTable[] = {
    // kBroadcast
    {{{kAll, kInlineSize, kInline}, {2, 16384, kPush}, {kAll, 4096, kPush}, {kAll, kAny, kPull}},
     {{kAll, 524288, kPush}, {kAll, kAny, kPull}}},
    // kCollect
    {{{kAll, 1024, kBounce}, {kAll, kAny, kPush}}, {{kAll, kBounceSize, kBounce}, {kAll, kAny, kPush}}},
    // kFcollect
    {{{kAll, kInlineSize, kInline}, {kAll, kAny, kPush}}, {{kAll, kInlineSize, kInline}, {kAll, kAny, kPush}}},
    // kAlltoall
    {{{kAll, kInlineSize, kInline}, {kAll, kAny, kPush}}, {{kAll, kInlineSize, kInline}, {kAll, kAny, kPush}}},
    // kReduce
    {{{kAll, 2048, kBounce}, {kAll, kAny, kSliced}}, {{kAll, 4096, kBounce}, {kAll, kAny, kSliced}}},
    // kScan
    {{{kAll, kInlineSize, kInline}, {kAll, 2048, kBounce}, {kAll, kAny, kSliced}},
     {{kAll, kInlineSize, kInline}, {kAll, kBounceSize, kBounce}, {kAll, kAny, kSliced}}},
};
static_assert(sizeof kTable / sizeof kTable[0] == static_cast<size_t>(Operation::kScan) + 1);

// What a setting forces; kAuto: nothing.
Algorithm forced(Operation operation) {
    const base::Settings& settings = base::settings;
    switch (operation) {
        case Operation::kBroadcast:
            return settings.broadcast;
        case Operation::kCollect:
            return settings.collect;
        case Operation::kFcollect:
            return settings.fcollect;
        case Operation::kAlltoall:
            return settings.alltoall;
        case Operation::kReduce:
            return settings.reduce;
        case Operation::kScan:
            return settings.scan;
    }
    return kAuto;
}

bool fits(Algorithm algorithm, size_t bytes) {
    return algorithm == kInline ? bytes <= team::kInlineBytes : algorithm != kBounce || bytes <= team::kBounceBytes;
}

// The least that is worth a message of a thread, and its part in the waits of the group: a piece of a long reduction.
constexpr size_t kLeastShare = 16 * 1024;
// The least that is worth a fiber, which takes 1 to 2 us: what a core copies in 3 us (docs/decisions/0080).
constexpr size_t kLeastPostedShare = 128 * 1024;

// As many as have `least` bytes each, of the threads that there is room for; or what the setting says.
template <class Room>
int divide(size_t bytes, int threads, size_t least, Room room) {
    switch (base::settings.collective_threads) {
        case base::CollectiveThreads::kOne:
            return 1;
        case base::CollectiveThreads::kAll:
            return bytes == 0 ? 1 : threads;
        case base::CollectiveThreads::kAuto:
            break;
    }
    return std::max(1, std::min({threads, room(), static_cast<int>(std::min<size_t>(bytes / least, INT_MAX))}));
}

}  // namespace

int select_sharers(size_t bytes, int threads, int (*room)()) {
    return divide(bytes, threads, kLeastShare, room);
}

int select_shares(size_t bytes, int threads) {
    return divide(bytes, threads, kLeastPostedShare, [] { return INT_MAX; });
}

Algorithm select(Operation operation, size_t bytes, int size) {
    const Algorithm asked = forced(operation);
    if (asked != kAuto && fits(asked, bytes))
        return asked;
    const Choice& choice = kTable[static_cast<size_t>(operation)];
    const Row* row = team::is_oversubscribed() ? choice.oversubscribed : choice.alone;
    while (size > row->members || bytes > row->bytes) ++row;  // the last row of each holds for all
    HEDDLE_INVARIANT(row->algorithm != kAuto && fits(row->algorithm, bytes));
    return row->algorithm;
}

}  // namespace heddle::collective
