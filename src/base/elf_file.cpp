#include "base/elf_file.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <cstring>

namespace heddle::base {

ElfFile::ElfFile(const char* path) : fd_(open(path, O_RDONLY | O_CLOEXEC)) {
    if (fd_ >= 0 && read(0, &header_, sizeof header_) && memcmp(header_.e_ident, ELFMAG, SELFMAG) == 0 &&
        header_.e_shentsize == sizeof names_ && read_section(header_.e_shstrndx, &names_))
        n_sections_ = header_.e_shnum;
}

ElfFile::~ElfFile() {
    if (fd_ >= 0)
        close(fd_);
}

bool ElfFile::read(uint64_t offset, void* to, size_t bytes) const {
    return fd_ >= 0 && pread(fd_, to, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
}

bool ElfFile::read_section(int number, ElfW(Shdr) * section) const {
    return read(header_.e_shoff + static_cast<uint64_t>(number) * sizeof *section, section, sizeof *section);
}

bool ElfFile::is_named(const ElfW(Shdr) & section, const char* name) const {
    char text[32] = {};
    const size_t bytes = strlen(name) + 1;
    return bytes <= sizeof text && read(names_.sh_offset + section.sh_name, text, bytes) && strcmp(text, name) == 0;
}

bool find_object(const char* path, uint64_t linked_address, ObjectName* found) {
    const ElfFile file(path);
    for (int number = 1; number < file.n_sections(); ++number) {
        ElfW(Shdr) section, strings;
        if (!file.read_section(number, &section) || section.sh_type != SHT_SYMTAB ||
            section.sh_link >= static_cast<unsigned>(file.n_sections()) ||
            !file.read_section(static_cast<int>(section.sh_link), &strings))
            continue;
        constexpr uint64_t kAtOnce = 128;
        ElfW(Sym) symbols[kAtOnce];
        const uint64_t count = section.sh_size / sizeof symbols[0];
        for (uint64_t first = 0; first < count; first += kAtOnce) {
            const uint64_t some = std::min(count - first, kAtOnce);
            if (!file.read(section.sh_offset + first * sizeof symbols[0], symbols, some * sizeof symbols[0]))
                return false;
            for (uint64_t i = 0; i < some; ++i) {
                const ElfW(Sym)& symbol = symbols[i];
                const uint64_t offset = linked_address - symbol.st_value;
                if ((symbol.st_info & 0xf) != STT_OBJECT || symbol.st_shndx == SHN_UNDEF || offset >= symbol.st_size)
                    continue;
                const uint64_t left = symbol.st_name < strings.sh_size ? strings.sh_size - symbol.st_name : 0;
                *found = {"", offset, symbol.st_size};
                return file.read(strings.sh_offset + symbol.st_name, found->name,
                                 std::min<uint64_t>(sizeof found->name - 1, left)) &&
                       found->name[0] != '\0';
            }
        }
    }
    return false;
}

}  // namespace heddle::base
