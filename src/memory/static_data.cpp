#include "memory/static_data.h"

#include "memory/fork.h"
#include "os/mappings.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <csignal>

namespace heddle::memory {

namespace {

uintptr_t page_down(uintptr_t address) {
    return address / os::page_bytes() * os::page_bytes();
}
uintptr_t page_up(uintptr_t address) {
    return os::round_up(address, os::page_bytes());
}

// Adds [begin, end), which lies behind all parts so far; a page may belong to two segments.
void add_part(StaticRange* range, uintptr_t begin, uintptr_t end) {
    if (range->parts.empty())
        range->begin = range->end = begin;
    begin = std::max(begin, range->end);
    if (begin >= end)
        return;
    if (begin == range->end && !range->parts.empty())
        range->parts.back().end = end;
    else
        range->parts.push_back({begin, end});
    range->end = end;
}

__attribute__((no_sanitize("address", "thread"))) bool is_zero_page(uintptr_t page, size_t page_bytes) {
    const auto* words = reinterpret_cast<const uint64_t*>(page);
    uint64_t any = 0;
    for (size_t i = 0; i < page_bytes / sizeof *words; ++i) any |= words[i];
    return any == 0;
}

// Copies the piece to the file, in which file_base is the place of address 0.
bool copy_piece(const os::Mapping& piece, const os::TouchedPages& touched, int fd, size_t file_base) {
    void* const memory = reinterpret_cast<void*>(piece.begin);
    if (!(piece.protection & PROT_READ) && mprotect(memory, piece.end - piece.begin, PROT_READ) != 0)
        return false;
    const size_t page_bytes = os::page_bytes();
    uintptr_t run = 0, run_end = 0;  // the pages to write next
    const auto write_run = [&] {
        return os::write_all(fd, reinterpret_cast<char*>(run), run_end - run, file_base + run);
    };
    for (uintptr_t at = piece.begin; at < piece.end;) {
        unsigned char flags[os::kPagesAtOnce];
        const size_t pages = std::min((piece.end - at) / page_bytes, os::kPagesAtOnce);
        if (piece.is_anonymous)
            touched.look(at, pages, flags);
        for (size_t i = 0; i < pages; ++i, at += page_bytes) {
            if ((piece.is_anonymous && !flags[i]) || is_zero_page(at, page_bytes))
                continue;
            if (at != run_end) {
                if (!write_run())
                    return false;
                run = at;
            }
            run_end = at + page_bytes;
        }
    }
    return write_run();
}

bool map_piece(const os::Mapping& piece, int fd, size_t file_base) {
    void* const memory = reinterpret_cast<void*>(piece.begin);
    const size_t bytes = piece.end - piece.begin;
    return os::map_shared(fd, file_base + piece.begin, bytes, memory) &&
           (piece.protection == (PROT_READ | PROT_WRITE) || mprotect(memory, bytes, piece.protection) == 0);
}

// The mappings within the parts. Without /proc an unreadable page may be unmapped: such pages are left out.
std::vector<os::Mapping> pieces_of(const StaticRange& range) {
    std::vector<os::Mapping> pieces;
    for (const StaticRange::Part& part : range.parts) {
        const size_t before = pieces.size();
        size_t count = 1;
        for (size_t room = 0; count > room;) {
            room = count;
            pieces.resize(before + room);
            count = os::read_mappings(part.begin, part.end, &pieces[before], room);
            if (count == os::kNoMaps)
                count = os::try_mappings(part.begin, part.end, &pieces[before], room);
        }
        pieces.resize(before + count);
    }
    std::erase_if(pieces, [](const os::Mapping& piece) {
        return !(piece.protection & PROT_READ) &&
               mprotect(reinterpret_cast<void*>(piece.begin), piece.end - piece.begin, piece.protection) != 0;
    });
    return pieces;
}

class NoSignals {
  public:
    NoSignals() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    NoSignals(const NoSignals&) = delete;
    NoSignals& operator=(const NoSignals&) = delete;

  private:
    sigset_t before_;
};

// Called under the loader's lock, so it must not allocate: the program's allocator might take that lock.
int find_executable(dl_phdr_info* info, size_t, void* result) {
    *static_cast<dl_phdr_info*>(result) = *info;
    return 1;  // the first object is the executable
}

}  // namespace

StaticRange find_static_data() {
    dl_phdr_info executable = {};
    dl_iterate_phdr(find_executable, &executable);
    return find_static_data(executable.dlpi_phdr, executable.dlpi_phnum, executable.dlpi_addr);
}

StaticRange find_static_data(const ElfW(Phdr) * headers, size_t count, uintptr_t base) {
    // The dynamic loader protects whole pages only, so a page that RELRO covers in part stays writable.
    uintptr_t relro_begin = 0, relro_end = 0;
    for (size_t i = 0; i < count; ++i) {
        if (headers[i].p_type == PT_GNU_RELRO) {
            relro_begin = page_down(base + headers[i].p_vaddr);
            relro_end = page_down(base + headers[i].p_vaddr + headers[i].p_memsz);
        }
    }
    StaticRange range;
    for (size_t i = 0; i < count; ++i) {
        const ElfW(Phdr)& segment = headers[i];  // ascending, as ELF demands
        if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_W) || segment.p_memsz == 0)
            continue;
        const uintptr_t begin = page_down(base + segment.p_vaddr);
        const uintptr_t end = page_up(base + segment.p_vaddr + segment.p_memsz);
        add_part(&range, begin, std::min(end, relro_begin));
        add_part(&range, std::max(begin, relro_end), end);
    }
    return range;
}

bool move_static_data(const StaticRange& range, int fd, size_t file_offset) {
    // All allocations come first: the program's allocator may keep its records in the data that is moved.
    const std::vector<os::Mapping> pieces = pieces_of(range);
    const auto* const kept = new StaticRange(range);  // stays valid as long as the process
    const os::TouchedPages touched;
    const size_t file_base = file_offset - range.begin;
    const NoSignals no_signals;
    const NoForks no_forks;
    for (const os::Mapping& piece : pieces)
        if (!copy_piece(piece, touched, fd, file_base))
            return false;
    keep_from_children(kept, fd, file_offset);
    return std::all_of(pieces.begin(), pieces.end(),
                       [&](const os::Mapping& piece) { return map_piece(piece, fd, file_base); });
}

}  // namespace heddle::memory
