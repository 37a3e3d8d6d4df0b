// The mappings of this process, and which of their pages may hold data. Threads: any. Nothing here allocates or prints,
// so that fork handlers may call it.
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
    bool is_anonymous;  // private, without a file: a page that was never touched is zero
};

// The mappings within [begin, end), which are whole pages: clipped to it, ascending. Writes the first `most` of them
// and returns how many there are; kNoMaps without /proc/self/maps.
size_t read_mappings(uintptr_t begin, uintptr_t end, Mapping* mappings, size_t most);
constexpr size_t kNoMaps = SIZE_MAX;

// Runs of pages within [begin, end) that are readable, reported as writable, and runs that are not, or not mapped: for
// systems without /proc. Reads each page, so pages of a file are then in memory.
size_t try_mappings(uintptr_t begin, uintptr_t end, Mapping* mappings, size_t most);

// Pages that are examined together: a kilobyte of flags and 8 KiB of pagemap entries fit on the caller's stack.
constexpr size_t kPagesAtOnce = 1024;

// Finds the pages of private anonymous memory that may differ from zero: those in memory or in swap space. All pages
// when /proc/self/pagemap cannot be read, or counts pages of another size (an emulator's).
class TouchedPages {
  public:
    TouchedPages();
    ~TouchedPages();
    TouchedPages(const TouchedPages&) = delete;
    TouchedPages& operator=(const TouchedPages&) = delete;
    // flags[i]: the page at address + i * page_bytes() may differ from zero. At most kPagesAtOnce pages.
    void look(uintptr_t address, size_t pages, unsigned char* flags) const;

  private:
    int pagemap_;
};

// flags[i], bit 0: the page of shared memory was touched by any process. All pages when the machine has swap space,
// which this test does not see. For memory whose descriptor is closed.
void look_for_resident_pages(uintptr_t address, size_t pages, unsigned char* flags);

// True when the page can be read.
bool is_readable(uintptr_t page);

// Identifies the file of a descriptor, even if the descriptor's number was reused.
struct FileId {
    dev_t device = 0;
    ino_t number = 0;
    bool operator==(const FileId&) const = default;
};
FileId identify(int fd);  // FileId{} when fd is closed

// Makes a shared mapping of fd at [address, address + bytes) private. Reads still see the writes of other processes
// until this process writes to a page, which then becomes its own. With fd -1, or when the kernel refuses, the range
// becomes read-only. The range is left out of core dumps.
void make_private(void* address, size_t bytes, int fd, size_t offset);

}  // namespace heddle::os
