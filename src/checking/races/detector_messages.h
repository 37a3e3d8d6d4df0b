// Messages between a PE and the detector that searches for it on another node: requests, and an answer where one is
// asked for. Both ends are builds of this library on machines of one kind, as are those of other messages. What has
// come is checked all the same: sizes, numbers, and words that are enums here. Threads: any.
#pragma once

#include "checking/races/race_detector.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace heddle::checking::races {

enum class RequestKind : uint32_t {
    kName,  // the text of a call, ahead of the first request with it; a CallText follows
    kAccess,
    kAccessAtOnce,  // `number` AccessRequest follow
    kAccessInCollective,
    kUpdate,
    kHold,
    kTouch,
    kHeld,
    kSee,
    kQuiet,
    kQuietTo,  // access.owner
    kQuietAll,
    kFence,
    kReleaseLock,
    kTakeLock,
    kEnterCollective,
    kLeaveCollective,
    kSeeUnknown,
    kLearnEnded,
    kEnd,
    kExpectStores,
    kSettle,
    kText,   // of the call `number` of the PE access.owner
    kIsNew,  // two CallTexts follow
};
constexpr uint32_t kRequestKinds = static_cast<uint32_t>(RequestKind::kIsNew) + 1;

// An Access, a buffer (position: its address), or a part of them.
struct AccessWords {
    uint64_t position = 0, bytes = 0;
    int32_t owner = 0;
    uint8_t writes = 0, is_atomic = 0, completion = 0, flow = 0;
};
// A call: its addresses in the PE's process, by which both ends know its text.
struct CallWords {
    uint64_t function = 0, caller = 0;
};
struct AccessRequest {
    AccessWords access;
    CallWords call;
};
struct Request {
    uint32_t kind = 0;
    uint32_t number = 0;
    AccessWords access;
    CallWords call;
    uint64_t team = 0;   // of a CollectiveKey
    uint32_t step = 0;   // likewise
    uint8_t thread = 0;  // of the PE
    uint8_t answers = 0;
    uint8_t flag = 0;  // is_signal, gives, takes
    uint8_t edge = 0;
};
// Races that follow: those that the PE's requests up to here have shown, and have room.
struct Answer {
    uint32_t races = 0;
    uint32_t left = 0;  // races without room
    uint64_t flag = 0;
    uint64_t begin = 0, end = 0;  // of a hull
    base::CallText text = {};
};
struct RaceWords {
    Mark earlier, later;
    uint64_t position = 0, bytes = 0, address = 0;
    int32_t owner = 0;
    uint8_t is_known = 0, edge = 0, is_buffer = 0, spare = 0;
};
static_assert(std::is_trivially_copyable_v<Request> && std::is_trivially_copyable_v<RaceWords>);

constexpr size_t kMostBytes = 16 * 1024;  // of a message
constexpr size_t kMostAtOnce = (kMostBytes - sizeof(Request)) / sizeof(AccessRequest);
constexpr size_t kMostRaces = (kMostBytes - sizeof(Answer)) / sizeof(RaceWords);

inline AccessWords words_of(const Access& access) {
    return {access.position,
            access.bytes,
            access.owner,
            static_cast<uint8_t>(access.writes),
            static_cast<uint8_t>(access.is_atomic),
            static_cast<uint8_t>(access.completion),
            static_cast<uint8_t>(access.flow)};
}

}  // namespace heddle::checking::races
