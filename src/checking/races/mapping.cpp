#include "checking/races/mapping.h"

#include "base/pe_local.h"
#include "memory/node_memory.h"
#include "os/mappings.h"
#include "os/memfd.h"

#include <cerrno>

namespace heddle::checking::races {

namespace {

HEDDLE_PE_LOCAL char* mapped = nullptr;

}  // namespace

char* map_search(size_t bytes) {
    const memory::NodeMemory& node = memory::node_memory;
    const size_t offset = os::round_up(node.layout.total_bytes, os::page_bytes());
    if (mapped)
        return mapped;
    if (const int error = os::set_memory_size(node.fd, offset + bytes); error != 0) {
        errno = -error;
        return nullptr;
    }
    mapped = static_cast<char*>(os::map_shared_unlocked(node.fd, offset, bytes, nullptr));
    if (mapped)
        os::set_dumped(mapped, bytes, false);
    return mapped;
}

}  // namespace heddle::checking::races
