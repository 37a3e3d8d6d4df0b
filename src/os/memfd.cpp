#include "os/memfd.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

namespace heddle::os {

namespace {

// Drops the SIGXFSZ that a call of this thread raises, and keeps one that was pending before.
class WithoutFileSizeSignal {
  public:
    WithoutFileSizeSignal() {
        sigset_t pending;
        sigemptyset(&only_);
        sigaddset(&only_, SIGXFSZ);
        sigpending(&pending);
        was_pending_ = sigismember(&pending, SIGXFSZ) == 1;
        pthread_sigmask(SIG_BLOCK, &only_, &before_);
    }
    ~WithoutFileSizeSignal() {
        const timespec at_once = {};
        if (!was_pending_)
            while (sigtimedwait(&only_, nullptr, &at_once) == SIGXFSZ) {
            }
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    WithoutFileSizeSignal(const WithoutFileSizeSignal&) = delete;
    WithoutFileSizeSignal& operator=(const WithoutFileSizeSignal&) = delete;

  private:
    sigset_t only_;
    sigset_t before_;
    bool was_pending_;
};

void* map(void* address, size_t bytes, int protection, int flags, int fd, size_t offset) {
    void* const mapped = mmap(address, bytes, protection, flags | MAP_NORESERVE | (address ? MAP_FIXED : 0), fd,
                              static_cast<off_t>(offset));
    return mapped == MAP_FAILED ? nullptr : mapped;
}

// Maps without committing or locking pages. After mlockall(MCL_FUTURE) the mapping begins without access, because an
// accessible one would be populated at once. Otherwise not: memcheck needs a quarter of the bytes for a change of
// access. What has no access is not populated, and only unlocked.
void* map_unlocked(void* address, size_t bytes, int protection, int flags, int fd, size_t offset) {
    if (protection == PROT_NONE) {
        void* const mapped = map(address, bytes, PROT_NONE, flags, fd, offset);
        if (mapped)
            munlock(mapped, bytes);
        return mapped;
    }
    if (locking_of_new_memory() == Locking::kNone)
        return map(address, bytes, protection, flags, fd, offset);
    void* const mapped = map(address, bytes, PROT_NONE, flags, fd, offset);
    if (mapped && (munlock(mapped, bytes) != 0 || mprotect(mapped, bytes, protection) != 0)) {
        const int error = errno;
        unmap(mapped, bytes);
        errno = error;
        return nullptr;
    }
    return mapped;
}

template <long kCall, class Byte>
bool transfer_all(int fd, Byte* memory, size_t bytes, size_t offset) {
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

constexpr int kPrivate = MAP_PRIVATE | MAP_ANONYMOUS;

// Leaves a reservation out of core dumps, which would read it all, and without huge pages: a stray read must not commit
// 2 MiB.
void* as_reservation(void* mapped, size_t bytes) {
    if (mapped) {
        set_dumped(mapped, bytes, false);
        madvise(mapped, bytes, MADV_NOHUGEPAGE);
    }
    return mapped;
}

}  // namespace

size_t page_bytes() {
    return static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

int create_memory(const char* label, size_t bytes) {
    const int fd = memfd_create(label, MFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    const int error = set_memory_size(fd, bytes);
    if (error != 0) {
        close(fd);
        return error;
    }
    return fd;
}

int set_memory_size(int fd, size_t bytes) {
    struct stat file;
    if (fstat(fd, &file) == 0 && static_cast<size_t>(file.st_size) == bytes)  // needs no lock of the file, as ftruncate
        return 0;
    const WithoutFileSizeSignal without_signal;
    return ftruncate(fd, static_cast<off_t>(bytes)) == 0 ? 0 : -errno;
}

const char* describe_memory_error(int error) {
    switch (error) {
        case EFBIG:
            return "File too large: the limit of file sizes (ulimit -f) holds for shared memory, too";
        case EAGAIN:
            return "the program has called mlockall, and the limit of locked memory (ulimit -l) is too low";
        default:
            return strerror(error);
    }
}

void* map_shared(int fd, size_t offset, size_t bytes, void* address) {
    return map(address, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
}

void* map_shared_unlocked(int fd, size_t offset, size_t bytes, void* address) {
    return map_unlocked(address, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
}

void* reserve_zeroes(size_t bytes) {
    return as_reservation(map_unlocked(nullptr, bytes, PROT_READ, kPrivate, -1, 0), bytes);
}

void* reserve(size_t bytes) {
    return as_reservation(map_unlocked(nullptr, bytes, PROT_NONE, kPrivate, -1, 0), bytes);
}

bool make_readable(void* address, size_t bytes) {
    return mprotect(address, bytes, PROT_READ) == 0;
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

bool read_all(int fd, char* memory, size_t bytes, size_t offset) {
    return transfer_all<SYS_pread64>(fd, memory, bytes, offset);
}

bool write_all(int fd, const char* memory, size_t bytes, size_t offset) {
    return transfer_all<SYS_pwrite64>(fd, memory, bytes, offset);
}

void unmap(void* address, size_t bytes) {
    munmap(address, bytes);
}

void set_dumped(void* address, size_t bytes, bool dumped) {
    madvise(address, bytes, dumped ? MADV_DODUMP : MADV_DONTDUMP);
}

Locking locking_of_new_memory() {
    const size_t bytes = page_bytes();
    void* const page = map(nullptr, bytes, PROT_READ | PROT_WRITE, kPrivate, -1, 0);
    if (!page)
        return errno == EAGAIN ? Locking::kAtOnce : Locking::kNone;  // EAGAIN: nothing more may be locked
    unsigned char resident = 0;
    mincore(page, 1, &resident);
    // The kernel refuses to drop locked pages, whether any are in memory or not.
    const bool locked = madvise(page, bytes, MADV_DONTNEED) != 0 && errno == EINVAL;
    unmap(page, bytes);
    return !locked ? Locking::kNone : (resident & 1) ? Locking::kAtOnce : Locking::kOnFault;
}

int lock_memory(void* address, size_t bytes, Locking locking) {
    constexpr unsigned kOnFaultFlag = 1;  // MLOCK_ONFAULT
    const bool done = locking == Locking::kNone ||
                      (locking == Locking::kAtOnce ? mlock(address, bytes) == 0
                                                   : syscall(SYS_mlock2, address, bytes, kOnFaultFlag) == 0);
    return done ? 0 : -errno;
}

void unlock_memory(void* address, size_t bytes) {
    munlock(address, bytes);
}

}  // namespace heddle::os
