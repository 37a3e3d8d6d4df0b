#include "collective/algorithm_table.h"

#include "base/settings.h"
#include "team/team_segment.h"

#include <climits>
#include <cstdint>
#include <initializer_list>

namespace heddle::collective {

namespace {

using enum Algorithm;

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

// The algorithm that a setting forces. The order of the setting's words is that of the lists here.
bool forced(Operation operation, Algorithm* algorithm) {
    const auto pick = [&](int choice, std::initializer_list<Algorithm> words) {
        if (choice == 0)
            return false;
        *algorithm = words.begin()[choice - 1];
        return true;
    };
    const base::Settings& settings = base::settings;
    switch (operation) {
        case Operation::kBroadcast:
            return pick(settings.broadcast, {kInline, kPush, kPull});
        case Operation::kCollect:
            return pick(settings.collect, {kBounce, kPush});
        case Operation::kFcollect:
            return pick(settings.fcollect, {kInline, kBounce, kPush});
        case Operation::kAlltoall:
            return pick(settings.alltoall, {kInline, kBounce, kPush});
        case Operation::kReduce:
            return pick(settings.reduce, {kBounce, kSliced});
        case Operation::kScan:
            return pick(settings.scan, {kInline, kBounce, kSliced});
    }
    return false;
}

bool fits(Algorithm algorithm, size_t bytes) {
    return algorithm == kInline ? bytes <= team::kInlineBytes : algorithm != kBounce || bytes <= team::kBounceBytes;
}

}  // namespace

Algorithm select(Operation operation, size_t bytes, int size) {
    Algorithm algorithm;
    if (forced(operation, &algorithm) && fits(algorithm, bytes))
        return algorithm;
    const Choice& choice = kTable[static_cast<size_t>(operation)];
    const Row* row = team::is_oversubscribed() ? choice.oversubscribed : choice.alone;
    while (size > row->members || bytes > row->bytes) ++row;  // the last row of each holds for all
    return row->algorithm;
}

}  // namespace heddle::collective
