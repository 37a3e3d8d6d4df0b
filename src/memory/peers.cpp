#include "memory/peers.h"

#include "os/memfd.h"
#include "os/valgrind.h"

#include <algorithm>

namespace heddle::memory {

namespace {

static_assert(sizeof(int) == 4 && sizeof(heddle_peer) == 32);

// Address space for 2 * half bytes of entries; the entry of number 0 is in the middle.
struct Room {
    char* begin = nullptr;
    size_t half = 0;

    char* middle() const { return begin + half; }
};

Room nobody_segment;

constexpr size_t half_bytes(int bits) {
    return (size_t{1} << bits) * sizeof(heddle_peer);
}

// The largest room for at most 2^bits numbers that the system allows, or none; its upper half holds at least
// table_bytes.
Room find_room(size_t table_bytes, int bits, void* (*map)(size_t)) {
    constexpr int kMinBits = 12;
    if (os::runs_under_valgrind())
        bits = std::min(bits, kFewerBits);
    while (bits >= kMinBits && half_bytes(bits) >= table_bytes) {
        if (void* begin = map(2 * half_bytes(bits)))
            return {static_cast<char*>(begin), half_bytes(bits)};
        bits = std::min(bits - 1, kFewerBits);
    }
    return {};
}

}  // namespace

heddle_peer* make_peer_table(int n_pes, int bits) {
    const size_t table_bytes = os::round_up(static_cast<size_t>(n_pes) * sizeof(heddle_peer), os::page_bytes());
    const Room room = find_room(table_bytes, bits, os::reserve_zeroes);
    if (!room.begin || (n_pes > 0 && !os::make_writable(room.middle(), table_bytes)))
        return nullptr;
    return reinterpret_cast<heddle_peer*>(room.middle());
}

const heddle_peer* reserve_nobody() {
    // Memcheck needs memory, a quarter of the bytes, for what changes from no access to some.
    nobody_segment = find_room(0, kEveryInt, os::runs_under_valgrind() ? os::reserve_zeroes : os::reserve);
    const size_t half = std::min(nobody_segment.half, half_bytes(kPlausibleBits));
    if (!nobody_segment.begin || !os::make_readable(nobody_segment.middle() - half, 2 * half))
        return nullptr;
    return reinterpret_cast<const heddle_peer*>(nobody_segment.middle());
}

const heddle_peer* nobody() {
    if (!nobody_segment.begin || !os::make_readable(nobody_segment.begin, 2 * nobody_segment.half))
        return nullptr;
    return reinterpret_cast<const heddle_peer*>(nobody_segment.middle());
}

}  // namespace heddle::memory
