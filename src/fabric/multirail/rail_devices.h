// Rail devices: the network interfaces of each rail. Threads: init alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace heddle::fabric {

// Deals interfaces to the rails in turns. named: interfaces with commas between them, as in HEDDLE_NET_DEVICES, a name
// several times where rails share an interface; empty: those of this host that carry addresses. A single rail takes
// `named` as it is. False with the reason in error.
bool deal_devices(const char* named, uint64_t rails, std::vector<std::string>* dealt, char* error, size_t error_bytes);

}  // namespace heddle::fabric
