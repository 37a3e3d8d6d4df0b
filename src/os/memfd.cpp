#include "os/memfd.h"

#include <sys/mman.h>
#include <unistd.h>
#include <cerrno>

namespace heddle::os {

int create_memory(const char* label, size_t bytes) {
    const int fd = memfd_create(label, MFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
        const int error = -errno;
        close(fd);
        return error;
    }
    return fd;
}

void* map_shared(int fd, size_t offset, size_t bytes, void* address) {
    void* mapped = mmap(address, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | (address ? MAP_FIXED : 0),
                        fd, static_cast<off_t>(offset));
    return mapped == MAP_FAILED ? nullptr : mapped;
}

void* reserve_zeroes(size_t bytes) {
    void* mapped = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED)
        return nullptr;
    madvise(mapped, bytes, MADV_DONTDUMP);    // core files would try to read it all
    madvise(mapped, bytes, MADV_NOHUGEPAGE);  // a stray read must not commit 2 MiB
    return mapped;
}

bool reserve_at(void* address, size_t bytes) {
    constexpr int kFixedNoReplace =
        0x100000;  // MAP_FIXED_NOREPLACE, Linux 4.17; to older kernels the address is a hint
    void* mapped =
        mmap(address, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | kFixedNoReplace, -1, 0);
    if (mapped == MAP_FAILED)
        return false;
    if (mapped != address)
        munmap(mapped, bytes);
    return mapped == address;
}

bool make_writable(void* address, size_t bytes) {
    return mprotect(address, bytes, PROT_READ | PROT_WRITE) == 0;
}

void* map_twice(size_t bytes) {
    char* const room = static_cast<char*>(reserve_zeroes(2 * bytes));
    const int fd = room ? create_memory("ring", bytes) : -1;
    const bool mapped = fd >= 0 && map_shared(fd, 0, bytes, room) && map_shared(fd, 0, bytes, room + bytes);
    if (fd >= 0)
        close(fd);
    if (room && !mapped)
        unmap(room, 2 * bytes);
    return mapped ? room : nullptr;
}

void unmap(void* address, size_t bytes) {
    munmap(address, bytes);
}

}  // namespace heddle::os
