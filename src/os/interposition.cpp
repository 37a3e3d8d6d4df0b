#include "os/interposition.h"

#include <link.h>
#include <algorithm>
#include <cstdio>
#include <cstring>

namespace heddle::os {

namespace {

// The names of a module that others may be bound to. The tables are those of the System V ABI and its GNU extension.
class SymbolTable {
  public:
    explicit SymbolTable(const dl_phdr_info& module) {
        for (int i = 0; i < module.dlpi_phnum; ++i)
            if (module.dlpi_phdr[i].p_type == PT_DYNAMIC)
                read(module.dlpi_addr, module.dlpi_addr + module.dlpi_phdr[i].p_vaddr);
    }

    // A definition whose name has one of the hashes and begins with prefix; null: none.
    const char* find(const uint32_t* hashes, size_t n, const char* prefix) const {
        if (!symbols_ || !names_)
            return nullptr;
        if (!gnu_hash_)
            return hash_ ? find_among_all(hashes, n, prefix) : nullptr;
        for (size_t i = 0; i < n; ++i)
            if (const char* const name = find_hash(hashes[i], prefix))
                return name;
        return nullptr;
    }

  private:
    void read(uintptr_t bias, uintptr_t dynamic) {
        // Some linkers leave the addresses as they are in the file.
        const auto loaded = [bias](uintptr_t address) { return address < bias ? bias + address : address; };
        for (const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(dynamic); entry->d_tag != DT_NULL; ++entry) {
            const uintptr_t address = loaded(entry->d_un.d_ptr);
            if (entry->d_tag == DT_SYMTAB)
                symbols_ = reinterpret_cast<const ElfW(Sym)*>(address);
            else if (entry->d_tag == DT_STRTAB)
                names_ = reinterpret_cast<const char*>(address);
            else if (entry->d_tag == DT_GNU_HASH)
                gnu_hash_ = reinterpret_cast<const uint32_t*>(address);
            else if (entry->d_tag == DT_HASH)
                hash_ = reinterpret_cast<const uint32_t*>(address);
        }
    }

    // The symbol's name, where it is a definition that begins with prefix. An executable's symbol without a section is
    // the address of its stub for another module's function.
    const char* name_of(uint32_t symbol, const char* prefix) const {
        const char* const name = names_ + symbols_[symbol].st_name;
        return symbols_[symbol].st_shndx != SHN_UNDEF && strncmp(name, prefix, strlen(prefix)) == 0 ? name : nullptr;
    }

    // DT_GNU_HASH: number of buckets, first symbol, words of the Bloom filter, its shift; the filter, buckets, chains.
    const char* find_hash(uint32_t hash, const char* prefix) const {
        constexpr uint32_t kWordBits = 8 * sizeof(ElfW(Addr));
        const uint32_t n_buckets = gnu_hash_[0], first = gnu_hash_[1], n_words = gnu_hash_[2], shift = gnu_hash_[3];
        const auto* const filter = reinterpret_cast<const ElfW(Addr)*>(gnu_hash_ + 4);
        const ElfW(Addr) word = filter[hash / kWordBits % n_words];
        if ((word >> hash % kWordBits & word >> (hash >> shift) % kWordBits & 1) == 0 || n_buckets == 0)
            return nullptr;
        const auto* const buckets = reinterpret_cast<const uint32_t*>(filter + n_words);
        const uint32_t* const chains = buckets + n_buckets;
        uint32_t symbol = buckets[hash % n_buckets];
        if (symbol < first)
            return nullptr;
        for (;; ++symbol) {  // the lowest bit of a chain's hash ends it
            const uint32_t other = chains[symbol - first];
            const char* const name = (other | 1) == (hash | 1) ? name_of(symbol, prefix) : nullptr;
            if (name && hash_of(name) == hash)
                return name;
            if (other & 1)
                return nullptr;
        }
    }

    // DT_HASH: number of buckets, number of symbols.
    const char* find_among_all(const uint32_t* hashes, size_t n, const char* prefix) const {
        for (uint32_t symbol = 1; symbol < hash_[1]; ++symbol)
            if (const char* const name = name_of(symbol, prefix))
                if (std::find(hashes, hashes + n, hash_of(name)) != hashes + n)
                    return name;
        return nullptr;
    }

    static uint32_t hash_of(const char* name) {
        uint32_t hash = 5381;
        for (; *name; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
        return hash;
    }

    const ElfW(Sym) * symbols_ = nullptr;
    const char* names_ = nullptr;
    const uint32_t *gnu_hash_ = nullptr, *hash_ = nullptr;
};

bool holds(const dl_phdr_info& module, uintptr_t address) {
    return std::any_of(module.dlpi_phdr, module.dlpi_phdr + module.dlpi_phnum, [&](const ElfW(Phdr) & segment) {
        return segment.p_type == PT_LOAD && address - module.dlpi_addr - segment.p_vaddr < segment.p_memsz;
    });
}

struct Search {
    const uint32_t* hashes;
    size_t n;
    const char* prefix;
    Definition* found;
    bool is_found = false;
};

}  // namespace

bool find_interposition(const uint32_t* hashes, size_t n, const char* prefix, Definition* found) {
    Search search = {hashes, n, prefix, found};
    dl_iterate_phdr(  // in the order in which the dynamic linker searches
        [](dl_phdr_info* module, size_t, void* it) {
            Search& asked = *static_cast<Search*>(it);
            if (holds(*module, reinterpret_cast<uintptr_t>(&holds)))
                return 1;  // this library
            const char* const name = SymbolTable(*module).find(asked.hashes, asked.n, asked.prefix);
            if (!name)
                return 0;
            snprintf(asked.found->module, sizeof asked.found->module, "%s", module->dlpi_name);
            snprintf(asked.found->name, sizeof asked.found->name, "%s", name);
            asked.is_found = true;
            return 1;
        },
        &search);
    return search.is_found;
}

}  // namespace heddle::os
