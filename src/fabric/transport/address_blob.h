// A PE's address blob: those of its transports, one a rail, each behind its size.
#pragma once

#include "fabric/transport/transport.h"

#include <cstddef>

namespace heddle::fabric {

// Adds the transport's address blob to the `bytes` that are there; false when it does not fit.
bool add_rail_address(const TransportApi& api, const Transport* transport, char* address_blob, size_t* bytes);

// From a PE's address blob and its size to that of one rail; false when there is none.
bool find_rail_address(const char** address_blob, size_t* bytes, int rail);

}  // namespace heddle::fabric
