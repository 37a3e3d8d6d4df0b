#include "memory/peers.h"

#include "os/memfd.h"

#include <cstdint>

namespace heddle::memory {

heddle_peer* make_peer_table(int n_pes) {
    static_assert(sizeof(int) == 4 && sizeof(heddle_peer) == 16);
    constexpr size_t kHalf = (size_t{1} << 31) * sizeof(heddle_peer);
    char* room = static_cast<char*>(os::reserve_zeroes(2 * kHalf));
    if (!room)
        return nullptr;
    char* table = room + kHalf;
    const size_t bytes = os::round_up(static_cast<size_t>(n_pes) * sizeof(heddle_peer), os::kPageBytes);
    return os::make_writable(table, bytes) ? reinterpret_cast<heddle_peer*>(table) : nullptr;
}

}  // namespace heddle::memory
