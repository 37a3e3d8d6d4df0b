// Single values of 1, 2, 4 or 8 bytes, copied untorn, as a load or store by a PE of the node would be: whoever looks at
// the same time sees the old value or the new one. Longer data, and a value that is not aligned, is copied as bytes.
#pragma once

#include <heddle/hot_path.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace heddle::fabric {

inline bool is_aligned(const char* place, size_t bytes) {
    return reinterpret_cast<uintptr_t>(place) % bytes == 0;
}

// To an aligned place, in one store; from anywhere.
template <class T>
void store_value(char* to, const char* from) {
    T value;
    memcpy(&value, from, sizeof value);
    heddle_store(to, &value, sizeof value);
}

// To memory that others may read at the same time.
inline void store_untorn(char* to, const char* from, size_t bytes) {
    if (bytes == 8 && is_aligned(to, 8))
        store_value<uint64_t>(to, from);
    else if (bytes == 4 && is_aligned(to, 4))
        store_value<uint32_t>(to, from);
    else if (bytes == 2 && is_aligned(to, 2))
        store_value<uint16_t>(to, from);
    else if (bytes == 1)
        store_value<uint8_t>(to, from);
    else
        memcpy(to, from, bytes);
}

// From memory that others may write at the same time, to a place aligned to 8 bytes.
inline void load_untorn(char* to, const char* from, size_t bytes) {
    if (bytes == 8 && is_aligned(from, 8))
        heddle_load(to, from, 8);
    else if (bytes == 4 && is_aligned(from, 4))
        heddle_load(to, from, 4);
    else if (bytes == 2 && is_aligned(from, 2))
        heddle_load(to, from, 2);
    else
        memcpy(to, from, bytes);
}

}  // namespace heddle::fabric
