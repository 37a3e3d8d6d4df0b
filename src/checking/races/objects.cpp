#include "checking/races/objects.h"

#include "base/elf_file.h"
#include "base/place.h"
#include "base/source_line.h"
#include "checking/races/shadow.h"
#include "memory/symmetric.h"
#include "os/locked.h"
#include "os/mappings.h"

#include <array>
#include <cinttypes>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <iterator>

namespace heddle::checking::races {

namespace {

// Of this PE's program, and so of all where they run the same one.
std::string global_at(size_t offset) {
    const uintptr_t address = memory::symmetric->data.base + offset;
    base::Module module;
    base::ObjectName object;
    std::array<char, PATH_MAX> path;
    std::array<char, 160> text;
    if (!base::find_module(address, &module) || !base::path_of(module, path.data(), path.size()) ||
        !base::find_object(path.data(), module.linked(address), &object))
        return {};
    snprintf(text.data(), text.size(), "from byte %" PRIu64 " of the %" PRIu64 " of %s", object.offset, object.bytes,
             object.name);
    return text.data();
}

}  // namespace

size_t data_position() {
    return os::round_up(memory::symmetric->heap.bytes, Shadow::kBlockBytes);
}

void Objects::allocate(size_t position, size_t bytes, const base::CallText& origin) {
    const os::Locked locked(lock_);
    blocks_[position] = {bytes, origin};
}

size_t Objects::free(size_t position) {
    const os::Locked locked(lock_);
    const auto found = blocks_.find(position);
    if (found == blocks_.end())
        return 0;
    const size_t bytes = found->second.bytes;
    blocks_.erase(found);
    return bytes;
}

std::string Objects::describe(size_t position) const {
    char text[256];
    const os::Locked locked(lock_);
    const auto behind = blocks_.upper_bound(position);
    if (behind != blocks_.begin()) {
        const auto& [begin, block] = *std::prev(behind);
        if (position - begin < block.bytes) {
            snprintf(text, sizeof text, "from byte %zu of the %zu of %s", position - begin, block.bytes,
                     block.origin.data());
            return text;
        }
    }
    const bool in_heap = position < memory::symmetric->heap.bytes;
    const size_t offset = position - (in_heap ? 0 : data_position());
    if (const std::string name = in_heap ? "" : global_at(offset); !name.empty())
        return name;
    snprintf(text, sizeof text, "from byte %#zx of its %s", offset, in_heap ? "heap" : "static data");
    return text;
}

}  // namespace heddle::checking::races
