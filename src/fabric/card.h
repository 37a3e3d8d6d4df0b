// A PE's card: those of its transports, one a rail, each behind its size.
#pragma once

#include "fabric/transport.h"

#include <cstddef>

namespace heddle::fabric {

// Adds the transport's card to the `bytes` that are there; false when it does not fit.
bool add_card(const TransportApi& api, const Transport* transport, char* card, size_t* bytes);

// From a PE's card and its size to that of one rail; false when there is none.
bool find_card(const char** card, size_t* bytes, int rail);

}  // namespace heddle::fabric
