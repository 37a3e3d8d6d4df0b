#include "collective/select.h"

#include "base/settings.h"
#include "team/room.h"

#include <climits>
#include <cstdint>
#include <initializer_list>

namespace heddle::collective {

namespace {

using enum Algorithm;

// The algorithm for parts of at most `bytes` among at most `members`; the first row that holds is taken.
struct Row {
    int members;
    size_t bytes;
    Algorithm algorithm;
};
constexpr size_t kAny = SIZE_MAX;
constexpr int kAll = INT_MAX;
constexpr size_t kNoteSize = team::kNoteBytes, kMailSize = team::kMailBytes;
constexpr int kMostRows = 4;

// For members that have a core each, and for members that share cores (where a meeting costs context switches, and
// copying twice is cheaper than meeting twice). Measured on a 2-core Zen 5 machine with 2 and 8 PEs.
struct Choice {
    Row alone[kMostRows];
    Row crowded[kMostRows];
};
constexpr Choice kTable[] = {
    // kBroadcast
    {{{kAll, kNoteSize, kNote}, {2, 16384, kPush}, {kAll, 4096, kPush}, {kAll, kAny, kPull}},
     {{kAll, 524288, kPush}, {kAll, kAny, kPull}}},
    // kCollect
    {{{kAll, 1024, kMail}, {kAll, kAny, kPush}}, {{kAll, kMailSize, kMail}, {kAll, kAny, kPush}}},
    // kFcollect
    {{{kAll, kNoteSize, kNote}, {kAll, kAny, kPush}}, {{kAll, kNoteSize, kNote}, {kAll, kAny, kPush}}},
    // kAlltoall
    {{{kAll, kNoteSize, kNote}, {kAll, kAny, kPush}}, {{kAll, kNoteSize, kNote}, {kAll, kAny, kPush}}},
    // kReduce
    {{{kAll, 2048, kMail}, {kAll, kAny, kSlices}}, {{kAll, 4096, kMail}, {kAll, kAny, kSlices}}},
    // kScan
    {{{kAll, kNoteSize, kNote}, {kAll, 2048, kMail}, {kAll, kAny, kSlices}},
     {{kAll, kNoteSize, kNote}, {kAll, kMailSize, kMail}, {kAll, kAny, kSlices}}},
};
static_assert(sizeof kTable / sizeof kTable[0] == static_cast<size_t>(Operation::kScan) + 1);

// What a setting forces; the order of its words is that of the enumerators here.
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
            return pick(settings.broadcast, {kNote, kPush, kPull});
        case Operation::kCollect:
            return pick(settings.collect, {kMail, kPush});
        case Operation::kFcollect:
            return pick(settings.fcollect, {kNote, kMail, kPush});
        case Operation::kAlltoall:
            return pick(settings.alltoall, {kNote, kMail, kPush});
        case Operation::kReduce:
            return pick(settings.reduce, {kMail, kSlices});
        case Operation::kScan:
            return pick(settings.scan, {kNote, kMail, kSlices});
    }
    return false;
}

bool fits(Algorithm algorithm, size_t bytes) {
    return algorithm == kNote ? bytes <= team::kNoteBytes : algorithm != kMail || bytes <= team::kMailBytes;
}

}  // namespace

Algorithm select(Operation operation, size_t bytes, int size) {
    Algorithm algorithm;
    if (forced(operation, &algorithm) && fits(algorithm, bytes))
        return algorithm;
    const Choice& choice = kTable[static_cast<size_t>(operation)];
    const Row* row = team::is_crowded() ? choice.crowded : choice.alone;
    while (size > row->members || bytes > row->bytes) ++row;  // the last row of each holds for all
    return row->algorithm;
}

}  // namespace heddle::collective
