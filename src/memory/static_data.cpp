#include "memory/static_data.h"

#include "os/memfd.h"

#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>

namespace heddle::memory {

namespace {

uintptr_t page_down(uintptr_t address) {
    return address / os::page_bytes() * os::page_bytes();
}
uintptr_t page_up(uintptr_t address) {
    return os::round_up(address, os::page_bytes());
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
    int fd;
    size_t file_offset;
    void (*after_fork)();
};
Moved moved;
thread_local void* snapshot;  // taken before the fork, given to the child; several threads may fork at once

// Reads or writes all bytes between memory and fd, or fails. As a system call: sanitizers would object to what lies
// between the program's variables.
template <long kCall>
bool transfer_all(int fd, char* memory, size_t bytes, size_t offset) {
    while (bytes > 0) {
        const long done = syscall(kCall, fd, memory, bytes, offset);
        if (done <= 0)
            return false;
        memory += done;
        bytes -= static_cast<size_t>(done);
        offset += static_cast<size_t>(done);
    }
    return true;
}

// Copies what has been written to, and skips the holes, from the file that holds the data to its copy.
bool take_snapshot(char* copy) {
    const size_t begin = moved.file_offset, end = begin + moved.range.bytes();
    for (size_t at = begin; at < end;) {
        const off_t data = lseek(moved.fd, static_cast<off_t>(at), SEEK_DATA);
        if (data < 0 || static_cast<size_t>(data) >= end)
            return data >= 0 || errno == ENXIO;
        const off_t hole = lseek(moved.fd, data, SEEK_HOLE);
        if (hole < 0)
            return false;
        at = std::min(static_cast<size_t>(hole), end);
        const size_t from = static_cast<size_t>(data);
        if (!transfer_all<SYS_pread64>(moved.fd, copy + (from - begin), at - from, from))
            return false;
    }
    return true;
}

void before_fork() {
    void* copy = mmap(nullptr, moved.range.bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    snapshot = copy == MAP_FAILED ? nullptr : copy;
    if (snapshot && !take_snapshot(static_cast<char*>(snapshot))) {
        munmap(snapshot, moved.range.bytes());
        snapshot = nullptr;
    }
}

void after_fork_in_parent() {
    if (snapshot)
        munmap(snapshot, moved.range.bytes());
}

void after_fork_in_child() {
    // Without its copy the child must not go on: it would write into its parent's variables.
    if (!snapshot || mremap(snapshot, moved.range.bytes(), moved.range.bytes(), MREMAP_MAYMOVE | MREMAP_FIXED,
                            reinterpret_cast<void*>(moved.range.begin)) == MAP_FAILED)
        _exit(1);
    moved.after_fork();
}

__attribute__((no_sanitize("address"))) bool is_zero_page(const char* page) {
    const auto* words = reinterpret_cast<const uint64_t*>(page);
    uint64_t any = 0;
    for (size_t i = 0; i < os::page_bytes() / sizeof *words; ++i) any |= words[i];
    return any == 0;
}

}  // namespace

StaticRange find_static_data() {
    StaticRange range;
    dl_iterate_phdr(read_segments, &range);
    return range;
}

bool move_static_data(const StaticRange& range, int fd, size_t file_offset, void (*after_fork)()) {
    char* from = reinterpret_cast<char*>(range.begin);
    for (size_t at = 0; at < range.bytes(); at += os::page_bytes()) {
        if (!is_zero_page(from + at) && !transfer_all<SYS_pwrite64>(fd, from + at, os::page_bytes(), file_offset + at))
            return false;
    }
    moved = {range, fd, file_offset, after_fork};
    if (pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) != 0)
        return false;
    return os::map_shared(fd, file_offset, range.bytes(), reinterpret_cast<void*>(range.begin)) != nullptr;
}

}  // namespace heddle::memory
