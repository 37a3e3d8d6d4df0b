#include "fabric/card.h"

#include <cstdint>
#include <cstring>

namespace heddle::fabric {

bool add_card(const TransportApi& api, const Transport* transport, char* card, size_t* bytes) {
    char own[kMostCardBytes];
    const size_t own_bytes = api.card(transport, own);
    const auto size = static_cast<uint16_t>(own_bytes);
    if (own_bytes == 0 || *bytes + sizeof size + own_bytes > kMostCardBytes)
        return false;
    memcpy(card + *bytes, &size, sizeof size);
    memcpy(card + *bytes + sizeof size, own, own_bytes);
    *bytes += sizeof size + own_bytes;
    return true;
}

bool find_card(const char** card, size_t* bytes, int rail) {
    const char* at = *card;
    const char* const end = at + *bytes;
    for (;; --rail) {
        uint16_t size;
        if (static_cast<size_t>(end - at) < sizeof size)
            return false;
        memcpy(&size, at, sizeof size);
        at += sizeof size;
        if (static_cast<size_t>(end - at) < size)
            return false;
        if (rail == 0) {
            *card = at;
            *bytes = size;
            return true;
        }
        at += size;
    }
}

}  // namespace heddle::fabric
