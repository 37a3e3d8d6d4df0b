// The address blob of a PE: the address blobs of its transports, one for each rail, each behind its size. Threads: any.
#pragma once

#include "fabric/transport/transport.h"

#include <cstddef>

namespace heddle::fabric {

// Adds the transport's address blob to a PE's, which has *bytes so far; false when it does not fit.
bool add_rail_address(const TransportApi& api, const Transport* transport, char* address_blob, size_t* bytes);

// Makes of a PE's address blob and its size the address blob and size of one rail; false when the PE has no such rail.
bool find_rail_address(const char** address_blob, size_t* bytes, int rail);

}  // namespace heddle::fabric
