// What is mapped where in this process, and which of its pages may hold something. Any thread; nothing here allocates
// or prints, so that fork handlers may call it.
#pragma once

#include "os/memfd.h"

#include <sys/types.h>
#include <cstddef>
#include <cstdint>

namespace heddle::os {

struct Mapping {
    uintptr_t begin;  // whole pages; of two mappings that share a page, the first has it
    uintptr_t end;
    int protection;     // PROT_...
    bool is_anonymous;  // private, of no file: a page of it that nobody has touched is zero
};

// The mappings within [begin, end), whole pages, clipped to it and ascending. Writes the first `most` of them and
// returns how many there are; kUntold without /proc/self/maps.
size_t read_mappings(uintptr_t begin, uintptr_t end, Mapping* mappings, size_t most);
constexpr size_t kUntold = SIZE_MAX;

// The same without /proc: runs of pages that can be read, taken for writable, and of pages that cannot, or are not
// mapped at all. Looks at each page, which is then in memory where it is of a file.
size_t try_mappings(uintptr_t begin, uintptr_t end, Mapping* mappings, size_t most);

// Pages that are looked at together: a kilobyte of flags and eight of the kernel's words on the caller's stack.
constexpr size_t kPagesAtOnce = 1024;

// Says which pages of private anonymous memory may differ from zero: those in memory or in swap space. All, where
// /proc/self/pagemap cannot be read, or counts pages of another size (an emulator's).
class TouchedPages {
  public:
    TouchedPages();
    ~TouchedPages();
    TouchedPages(const TouchedPages&) = delete;
    TouchedPages& operator=(const TouchedPages&) = delete;
    // flags[i]: the page at address + i * page_bytes() is one. At most kPagesAtOnce pages.
    void look(uintptr_t address, size_t pages, unsigned char* flags) const;

  private:
    int pagemap_;
};

// The same of shared memory whose descriptor is lost: pages that this or another process has put there. All, where the
// machine has swap space, into which the kernel does not look here.
void look_for_resident_pages(uintptr_t address, size_t pages, unsigned char* flags);

// The page can be read.
bool is_readable(uintptr_t page);

// Which file a descriptor names, however it was reused meanwhile.
struct FileId {
    dev_t device = 0;
    ino_t number = 0;
    bool operator==(const FileId&) const = default;
};
FileId identify(int fd);  // FileId{} when it is closed

// Maps what fd has at offset over [address, address + bytes), where it is mapped shared: reads still see what others
// write, until this process writes to the page itself, and then that write and the page are its own. With fd -1, or
// when the kernel refuses: cannot be written any more. Not part of core files.
void make_private(void* address, size_t bytes, int fd, size_t offset);

}  // namespace heddle::os
