#include "os/mappings.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

namespace heddle::os {

namespace {

// Reads /proc/self/maps character by character.
class Maps {
  public:
    Maps() : fd_(open("/proc/self/maps", O_RDONLY | O_CLOEXEC)) {}
    ~Maps() {
        if (fd_ >= 0)
            close(fd_);
    }
    Maps(const Maps&) = delete;
    Maps& operator=(const Maps&) = delete;

    bool is_open() const { return fd_ >= 0; }
    bool failed() const { return failed_; }

    // 0 at the end of the file.
    char next() {
        if (at_ == filled_) {
            const ssize_t got = read(fd_, buffer_, sizeof buffer_);
            failed_ |= got < 0;
            if (got <= 0)
                return 0;
            at_ = 0;
            filled_ = static_cast<size_t>(got);
        }
        return buffer_[at_++];
    }

    // The next number of that base; consumes the character that ends it.
    uintptr_t number(unsigned base) {
        uintptr_t value = 0;
        for (;;) {
            const char c = next();
            const unsigned digit = c >= '0' && c <= '9'   ? static_cast<unsigned>(c - '0')
                                   : c >= 'a' && c <= 'f' ? static_cast<unsigned>(c - 'a') + 10
                                                          : base;
            if (digit >= base)
                return value;
            value = value * base + digit;
        }
    }

    // Reads a line "begin-end rwxp offset major:minor inode path\n"; false at the end of the file.
    bool line(Mapping* mapping) {
        mapping->begin = number(16);
        mapping->end = number(16);
        mapping->protection = (next() == 'r' ? PROT_READ : 0) | (next() == 'w' ? PROT_WRITE : 0);
        mapping->protection |= next() == 'x' ? PROT_EXEC : 0;
        const bool is_private = next() == 'p';
        next();
        number(16);  // offset, major, minor
        number(16);
        number(16);
        // Without a path the inode ends the line.
        uintptr_t inode = 0;
        char c = next();
        for (; c >= '0' && c <= '9'; c = next()) inode = inode * 10 + static_cast<uintptr_t>(c - '0');
        while (c != '\n' && c != 0) c = next();
        mapping->is_anonymous = is_private && inode == 0;
        return c != 0;
    }

  private:
    int fd_;
    bool failed_ = false;
    size_t at_ = 0, filled_ = 0;
    char buffer_[4096];
};

// False without /proc.
bool read_maps(uintptr_t begin, uintptr_t end, Mapping* mappings, size_t most, size_t* count) {
    Maps maps;
    if (!maps.is_open())
        return false;
    *count = 0;
    Mapping mapping;
    bool any = false;
    while (maps.line(&mapping) && mapping.begin < end) {
        any = true;
        // An emulator whose pages are larger than the kernel's shows mappings that end within a page.
        mapping.begin = std::max(mapping.begin / page_bytes() * page_bytes(), begin);
        mapping.end = std::min(round_up(mapping.end, page_bytes()), end);
        if (mapping.begin >= mapping.end)
            continue;
        begin = mapping.end;
        if (*count < most)
            mappings[*count] = mapping;
        ++*count;
    }
    return any && !maps.failed();
}

}  // namespace

size_t try_mappings(uintptr_t begin, uintptr_t end, Mapping* mappings, size_t most) {
    const size_t page = page_bytes();
    size_t count = 0;
    for (uintptr_t at = begin; at < end;) {
        const bool readable = is_readable(at);
        const uintptr_t first = at;
        do {
            at += page;
        } while (at < end && is_readable(at) == readable);
        if (count < most)
            mappings[count] = {first, at, readable ? PROT_READ | PROT_WRITE : PROT_NONE, false};
        ++count;
    }
    return count;
}

size_t read_mappings(uintptr_t begin, uintptr_t end, Mapping* mappings, size_t most) {
    size_t count = 0;
    return read_maps(begin, end, mappings, most, &count) ? count : kNoMaps;
}

TouchedPages::TouchedPages() : pagemap_(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)) {
    unsigned char is_touched = 1;
    look(reinterpret_cast<uintptr_t>(&is_touched) / page_bytes() * page_bytes(), 1, &is_touched);
    if (pagemap_ >= 0 && !is_touched) {  // the stack is not where it says: its pages are of another size than ours
        close(pagemap_);
        pagemap_ = -1;
    }
}

TouchedPages::~TouchedPages() {
    if (pagemap_ >= 0)
        close(pagemap_);
}

void TouchedPages::look(uintptr_t address, size_t pages, unsigned char* flags) const {
    constexpr uint64_t kInMemoryOrSwap = uint64_t{3} << 62;  // Documentation/admin-guide/mm/pagemap.rst
    uint64_t words[kPagesAtOnce];
    const size_t bytes = pages * sizeof *words;
    const bool is_told =
        pagemap_ >= 0 &&
        pread(pagemap_, words, bytes, static_cast<off_t>(address / page_bytes() * 8)) == static_cast<ssize_t>(bytes);
    for (size_t i = 0; i < pages; ++i) flags[i] = !is_told || (words[i] & kInMemoryOrSwap) != 0;
}

void look_for_resident_pages(uintptr_t address, size_t pages, unsigned char* flags) {
    struct sysinfo machine;
    const bool is_told = sysinfo(&machine) == 0 && machine.totalswap == 0 &&
                         mincore(reinterpret_cast<void*>(address), pages * page_bytes(), flags) == 0;
    if (!is_told)
        memset(flags, 1, pages);
}

// A futex wait of zero length for an unlikely value: the kernel reads the word, and fails with EFAULT when it cannot.
bool is_readable(uintptr_t page) {
    constexpr uint32_t kUnlikely = 0x5a17c0de;
    const timespec no_time = {0, 0};
    return syscall(SYS_futex, page, FUTEX_WAIT_PRIVATE, kUnlikely, &no_time, nullptr, 0) == 0 || errno != EFAULT;
}

FileId identify(int fd) {
    struct stat status;
    return fstat(fd, &status) == 0 ? FileId{status.st_dev, status.st_ino} : FileId{};
}

void make_private(void* address, size_t bytes, int fd, size_t offset) {
    if (fd >= 0 && mmap(address, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, fd,
                        static_cast<off_t>(offset)) != MAP_FAILED)
        madvise(address, bytes, MADV_DONTDUMP);
    else
        mprotect(address, bytes, PROT_READ);
}

}  // namespace heddle::os
