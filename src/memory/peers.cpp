#include "memory/peers.h"

#include <cstdint>

#include "os/memfd.h"

namespace heddle::memory {

heddle_peer* make_peer_table(int n_pes, int bits) {
    static_assert(sizeof(int) == 4 && sizeof(heddle_peer) == 32);
    constexpr int kLeastBits = 12;
    const size_t table_bytes = os::round_up(static_cast<size_t>(n_pes) * sizeof(heddle_peer), os::kPageBytes);
    for (; bits >= kLeastBits; --bits) {
        const size_t half = (size_t{1} << bits) * sizeof(heddle_peer);
        if (half < table_bytes)
            break;
        char* room = static_cast<char*>(os::reserve_zeroes(2 * half));
        if (!room)
            continue;
        char* table = room + half;
        return n_pes == 0 || os::make_writable(table, table_bytes) ? reinterpret_cast<heddle_peer*>(table) : nullptr;
    }
    return nullptr;
}

}  // namespace heddle::memory
