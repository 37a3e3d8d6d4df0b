// The sections of an executable or shared library, read from its file. Safe in a signal handler: no memory is
// allocated. A damaged file has no sections, or names nothing.
#pragma once

#include <link.h>

#include <cstddef>
#include <cstdint>

namespace heddle::base {

class ElfFile {
  public:
    explicit ElfFile(const char* path);
    ~ElfFile();
    ElfFile(const ElfFile&) = delete;
    ElfFile& operator=(const ElfFile&) = delete;

    // Their number; 0: no such file, or none of this machine's format.
    int n_sections() const { return n_sections_; }
    bool read_section(int number, ElfW(Shdr) * section) const;
    // True when the section has this name.
    bool is_named(const ElfW(Shdr) & section, const char* name) const;
    // Reads bytes of the file; false when it has fewer.
    bool read(uint64_t offset, void* to, size_t bytes) const;

  private:
    int fd_;
    int n_sections_ = 0;
    ElfW(Ehdr) header_ = {};
    ElfW(Shdr) names_ = {};
};

// A variable of a module, by its symbol.
struct ObjectName {
    char name[64] = "";
    uint64_t offset = 0;  // of the address within it
    uint64_t bytes = 0;   // its size
};
// The variable at an address as in the module's file. False when the file has no symbol for it.
bool find_object(const char* path, uint64_t linked_address, ObjectName* found);

}  // namespace heddle::base
