// Cards are parts one behind the other, each behind its size: what those of PEs (card.h) and of transports have in
// common.
#pragma once

#include "fabric/transport.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>

namespace heddle::fabric {

struct Part {
    const char* data = nullptr;
    size_t bytes = 0;
};

// Adds a part, made of two, to the `bytes` of the card that are there; false when it does not fit.
inline bool add_part(char* card, size_t* bytes, Part first, Part second = {}) {
    const auto size = static_cast<uint16_t>(first.bytes + second.bytes);
    if (*bytes + sizeof size + first.bytes + second.bytes > kMostCardBytes)
        return false;
    memcpy(card + *bytes, &size, sizeof size);
    *bytes += sizeof size;
    for (const Part& part : {first, second}) {
        if (part.bytes != 0)
            memcpy(card + *bytes, part.data, part.bytes);
        *bytes += part.bytes;
    }
    return true;
}

// {null, 0} when there are not as many.
inline Part part_of(const char* card, size_t card_bytes, int number) {
    size_t at = 0;
    for (;; --number) {
        uint16_t size;
        if (card_bytes - at < sizeof size)
            return {};
        memcpy(&size, card + at, sizeof size);
        at += sizeof size;
        if (card_bytes - at < size)
            return {};
        if (number == 0)
            return {card + at, size};
        at += size;
    }
}

}  // namespace heddle::fabric
