#include "memory/static_data.h"

#include "os/memfd.h"

#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

namespace heddle::memory {

namespace {

uintptr_t page_down(uintptr_t address) {
    return address / os::kPageBytes * os::kPageBytes;
}
uintptr_t page_up(uintptr_t address) {
    return os::round_up(address, os::kPageBytes);
}

// dl_iterate_phdr's first object is the executable. Its writable segments, less what RELRO makes read-only: the dynamic
// loader protects whole pages only, so a page that RELRO covers in part stays writable.
int read_segments(dl_phdr_info* info, size_t, void* result) {
    auto& range = *static_cast<StaticRange*>(result);
    uintptr_t relro_begin = 0, relro_end = 0;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const ElfW(Phdr)& segment = info->dlpi_phdr[i];
        if (segment.p_type == PT_GNU_RELRO) {
            relro_begin = page_down(info->dlpi_addr + segment.p_vaddr);
            relro_end = page_down(info->dlpi_addr + segment.p_vaddr + segment.p_memsz);
        }
    }
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const ElfW(Phdr)& segment = info->dlpi_phdr[i];
        if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_W))
            continue;
        uintptr_t begin = page_down(info->dlpi_addr + segment.p_vaddr);
        const uintptr_t end = page_up(info->dlpi_addr + segment.p_vaddr + segment.p_memsz);
        if (begin >= relro_begin && begin < relro_end)
            begin = relro_end;
        if (begin >= end)
            continue;
        // One range: linkers put the writable pages last and together. Were there a hole, the later part is the data.
        if (range.end != begin)
            range.begin = begin;
        range.end = end;
    }
    return 1;
}

// What the atfork handlers need; kept outside the static data that they replace, as this library's own always is.
struct Moved {
    StaticRange range;
    void* snapshot;  // taken before the fork, given to the child
    void (*after_fork)();
};
Moved moved;

void before_fork() {
    void* copy = mmap(nullptr, moved.range.bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    moved.snapshot = copy == MAP_FAILED ? nullptr : copy;
    if (moved.snapshot)
        memcpy(moved.snapshot, reinterpret_cast<void*>(moved.range.begin), moved.range.bytes());
}

void after_fork_in_parent() {
    if (moved.snapshot)
        munmap(moved.snapshot, moved.range.bytes());
}

void after_fork_in_child() {
    // Without memory for the copy the child must not go on: it would write into its parent's variables.
    if (!moved.snapshot ||
        mremap(moved.snapshot, moved.range.bytes(), moved.range.bytes(), MREMAP_MAYMOVE | MREMAP_FIXED,
               reinterpret_cast<void*>(moved.range.begin)) == MAP_FAILED)
        _exit(1);
    moved.after_fork();
}

bool write_all(int fd, const char* from, size_t bytes, size_t offset) {
    while (bytes > 0) {
        const ssize_t written = pwrite(fd, from, bytes, static_cast<off_t>(offset));
        if (written <= 0)
            return false;
        from += written;
        bytes -= static_cast<size_t>(written);
        offset += static_cast<size_t>(written);
    }
    return true;
}

bool is_zero_page(const char* page) {
    return page[0] == 0 && memcmp(page, page + 1, os::kPageBytes - 1) == 0;
}

}  // namespace

StaticRange find_static_data() {
    StaticRange range;
    dl_iterate_phdr(read_segments, &range);
    return range;
}

bool move_static_data(const StaticRange& range, int fd, size_t file_offset, void (*after_fork)()) {
    const char* from = reinterpret_cast<const char*>(range.begin);
    for (size_t at = 0; at < range.bytes(); at += os::kPageBytes) {
        if (!is_zero_page(from + at) && !write_all(fd, from + at, os::kPageBytes, file_offset + at))
            return false;
    }
    moved = {range, nullptr, after_fork};
    if (pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) != 0)
        return false;
    return os::map_shared(fd, file_offset, range.bytes(), reinterpret_cast<void*>(range.begin)) != nullptr;
}

}  // namespace heddle::memory
