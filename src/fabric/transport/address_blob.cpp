#include "fabric/transport/address_blob.h"

#include "fabric/transport/address_parts.h"

namespace heddle::fabric {

bool add_rail_address(const TransportApi& api, const Transport* transport, char* address_blob, size_t* bytes) {
    char own[kMaxAddressBlobBytes];
    const size_t own_bytes = api.address_blob(transport, own);
    return own_bytes != 0 && add_part(address_blob, bytes, {own, own_bytes});
}

bool find_rail_address(const char** address_blob, size_t* bytes, int rail) {
    const Part part = part_of(*address_blob, *bytes, rail);
    *address_blob = part.data;
    *bytes = part.bytes;
    return part.data != nullptr;
}

}  // namespace heddle::fabric
