#include "fabric/card.h"

#include "fabric/parts.h"

namespace heddle::fabric {

bool add_card(const TransportApi& api, const Transport* transport, char* card, size_t* bytes) {
    char own[kMostCardBytes];
    const size_t own_bytes = api.card(transport, own);
    return own_bytes != 0 && add_part(card, bytes, {own, own_bytes});
}

bool find_card(const char** card, size_t* bytes, int rail) {
    const Part part = part_of(*card, *bytes, rail);
    *card = part.data;
    *bytes = part.bytes;
    return part.data != nullptr;
}

}  // namespace heddle::fabric
