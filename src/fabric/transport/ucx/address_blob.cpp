// Address blobs: parts, each behind its size. Of each region its base and its key, empty where there is none; of each
// channel its address.
#include "fabric/transport/address_parts.h"
#include "fabric/transport/ucx/ucx.h"

#include <cstring>

namespace heddle::fabric::ucx {

namespace {

bool add_memory(const Transport& transport, const Transport::Memory& memory, char* address_blob, size_t* bytes) {
    if (!memory.handle)
        return add_part(address_blob, bytes, {});
    void* key = nullptr;
    size_t key_bytes = 0;
    if (ucp_rkey_pack(transport.context, memory.handle, &key, &key_bytes) != UCS_OK)
        return false;
    const bool fits = add_part(address_blob, bytes, {reinterpret_cast<const char*>(&memory.base), sizeof memory.base},
                               {static_cast<const char*>(key), key_bytes});
    ucp_rkey_buffer_release(key);
    return fits;
}

}  // namespace

size_t address_blob(const Transport* transport, char* address_blob) {
    size_t bytes = 0;
    for (const Transport::Memory& memory : transport->memories)
        if (!add_memory(*transport, memory, address_blob, &bytes))
            return 0;
    for (const Channel& channel : transport->channels)
        if (!add_part(address_blob, &bytes, {reinterpret_cast<const char*>(channel.address), channel.address_bytes}))
            return 0;
    return bytes;
}

const char* address_in(const char* address_blob, size_t address_blob_bytes, int channel) {
    return part_of(address_blob, address_blob_bytes, kRegions + channel).data;
}

void take_keys(Endpoint* endpoint, const char* address_blob, size_t address_blob_bytes) {
    for (int i = 0; i < kRegions; ++i) {
        const Part part = part_of(address_blob, address_blob_bytes, i);
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
