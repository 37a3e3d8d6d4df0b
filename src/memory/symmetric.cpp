#include "memory/symmetric.h"

#include "base/invariant.h"

#include <link.h>
#include <cstdio>
#include <cstring>

namespace heddle::memory {

HEDDLE_PE_LOCAL base::PePointer<Symmetric> symmetric;

namespace {

struct Search {
    uintptr_t address;
    const char* library = nullptr;
    bool first = true;  // the executable itself
};

int find_library(dl_phdr_info* info, size_t, void* result) {
    auto& search = *static_cast<Search*>(result);
    const bool executable = search.first;
    search.first = false;
    for (int i = 0; i < info->dlpi_phnum && !executable; ++i) {
        const ElfW(Phdr)& segment = info->dlpi_phdr[i];
        if (segment.p_type == PT_LOAD && search.address - (info->dlpi_addr + segment.p_vaddr) < segment.p_memsz) {
            search.library = info->dlpi_name;
            return 1;
        }
    }
    return 0;
}

}  // namespace

char* address_on(const void* address, int pe) {
    const Symmetric& memory = *symmetric;
    HEDDLE_INVARIANT(pe >= 0 && pe < memory.n_pes);
    const uintptr_t at = reinterpret_cast<uintptr_t>(address);
    if (!memory.peers[pe].heap)
        return nullptr;
    if (memory.heap.holds(address))
        return memory.peers[pe].heap + (at - memory.heap.base);
    if (memory.data.holds(address))
        return memory.peers[pe].data + (at - memory.data.base);
    return nullptr;
}

void describe_not_symmetric(const void* address, char* text, size_t text_bytes) {
    const Symmetric& memory = *symmetric;
    int used =
        snprintf(text, text_bytes, "is not symmetric: heap is [%#zx, %#zx), data is [%#zx, %#zx)", memory.heap.base,
                 memory.heap.base + memory.heap.bytes, memory.data.base, memory.data.base + memory.data.bytes);
    Search search = {reinterpret_cast<uintptr_t>(address)};
    dl_iterate_phdr(find_library, &search);
    if (search.library && used > 0 && static_cast<size_t>(used) < text_bytes) {
        const char* slash = strrchr(search.library, '/');
        snprintf(text + used, text_bytes - static_cast<size_t>(used),
                 "; it is static data of %s, and only the executable's static data is symmetric",
                 slash ? slash + 1 : search.library);
    }
}

}  // namespace heddle::memory
