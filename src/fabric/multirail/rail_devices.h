// Which network interfaces make up which rail.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace heddle::fabric {

// named: interfaces with commas between them, as in HEDDLE_NET_DEVICES; those of this host that carry addresses when
// empty. They are dealt to the rails in turns; a name may stand there more than once, for rails that share an
// interface. One rail takes what is named as it is. False with the reason in error.
bool deal_devices(const char* named, uint64_t rails, std::vector<std::string>* dealt, char* error, size_t error_bytes);

}  // namespace heddle::fabric
