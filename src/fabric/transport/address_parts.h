// Address parts: an address blob is made of parts, each behind its size of 16 bits. The address blobs of PEs
// (fabric/transport/address_blob.h) and those of transports are written and read with these functions. Threads: any.
#pragma once

#include "fabric/transport/transport.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>

namespace heddle::fabric {

struct Part {
    const char* data = nullptr;
    size_t bytes = 0;
};

// Adds a part, made of two, to the `bytes` of the address blob that are there; false when it does not fit.
inline bool add_part(char* address_blob, size_t* bytes, Part first, Part second = {}) {
    const auto size = static_cast<uint16_t>(first.bytes + second.bytes);
    if (*bytes + sizeof size + first.bytes + second.bytes > kMaxAddressBlobBytes)
        return false;
    memcpy(address_blob + *bytes, &size, sizeof size);
    *bytes += sizeof size;
    for (const Part& part : {first, second}) {
        if (part.bytes != 0)
            memcpy(address_blob + *bytes, part.data, part.bytes);
        *bytes += part.bytes;
    }
    return true;
}

// The part with that number, from 0; {null, 0} when there are fewer parts, or a size leads beyond the end.
inline Part part_of(const char* address_blob, size_t address_blob_bytes, int number) {
    size_t at = 0;
    for (;; --number) {
        uint16_t size;
        if (address_blob_bytes - at < sizeof size)
            return {};
        memcpy(&size, address_blob + at, sizeof size);
        at += sizeof size;
        if (address_blob_bytes - at < size)
            return {};
        if (number == 0)
            return {address_blob + at, size};
        at += size;
    }
}

}  // namespace heddle::fabric
