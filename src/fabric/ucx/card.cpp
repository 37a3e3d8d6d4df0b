// Cards: parts, each behind its size. Of each region its base and its key, empty where there is none; of each wire its
// address.
#include "fabric/parts.h"
#include "fabric/ucx/ucx.h"

#include <cstring>

namespace heddle::fabric::ucx {

namespace {

bool add_memory(const Transport& transport, const Transport::Memory& memory, char* card, size_t* bytes) {
    if (!memory.handle)
        return add_part(card, bytes, {});
    void* key = nullptr;
    size_t key_bytes = 0;
    if (ucp_rkey_pack(transport.context, memory.handle, &key, &key_bytes) != UCS_OK)
        return false;
    const bool fits = add_part(card, bytes, {reinterpret_cast<const char*>(&memory.base), sizeof memory.base},
                               {static_cast<const char*>(key), key_bytes});
    ucp_rkey_buffer_release(key);
    return fits;
}

}  // namespace

size_t card(const Transport* transport, char* card) {
    size_t bytes = 0;
    for (const Transport::Memory& memory : transport->memories)
        if (!add_memory(*transport, memory, card, &bytes))
            return 0;
    for (const Wire& wire : transport->wires)
        if (!add_part(card, &bytes, {reinterpret_cast<const char*>(wire.address), wire.address_bytes}))
            return 0;
    return bytes;
}

const char* address_in(const char* card, size_t card_bytes, int wire) {
    return part_of(card, card_bytes, kRegions + wire).data;
}

void take_keys(Endpoint* endpoint, const char* card, size_t card_bytes) {
    for (int i = 0; i < kRegions; ++i) {
        const Part part = part_of(card, card_bytes, i);
        if (part.bytes <= sizeof endpoint->bases[i])
            continue;
        memcpy(&endpoint->bases[i], part.data, sizeof endpoint->bases[i]);
        endpoint->is_native =
            ucp_ep_rkey_unpack(endpoint->endpoint, part.data + sizeof endpoint->bases[i], &endpoint->keys[i]) == UCS_OK;
        if (!endpoint->is_native)
            return;
    }
}

}  // namespace heddle::fabric::ucx
