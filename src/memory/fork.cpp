#include "memory/fork.h"

#include "base/error.h"
#include "memory/node_memory.h"
#include "os/mappings.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>

namespace heddle::memory {

namespace {

// The state is not in the static data that is copied, as no variable of this library is. Guarded by `lock`.
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
void (*begin_child)() = nullptr;
const StaticRange* shared = nullptr;
bool is_shared = false;  // children need a copy; a child's own children do not
int memory_fd = -1;
size_t file_offset = 0;
os::FileId memory_file;

// Taken before the fork, adopted by the child.
char* snapshot = nullptr;  // the parts of the range, one behind the other
const char* missing = nullptr;
int missing_error = 0;
constexpr size_t kMaxProtected = 64;
// Mappings that the program has protected. Beyond this number, they stay writable in the child.
os::Mapping guarded[kMaxProtected];
size_t n_guarded = 0;

size_t snapshot_bytes() {
    size_t bytes = 0;
    for (const StaticRange::Part& part : shared->parts) bytes += part.bytes();
    return bytes;
}

void drop_snapshot() {
    if (snapshot)
        os::unmap(snapshot, snapshot_bytes());
    snapshot = nullptr;
}

// Copies the pages that were written, without the holes, from the file that holds the data.
bool copy_from_file(const StaticRange::Part& part, char* copy) {
    const size_t begin = file_offset + (part.begin - shared->begin), end = begin + part.bytes();
    for (size_t at = begin; at < end;) {
        const off_t data = lseek(memory_fd, static_cast<off_t>(at), SEEK_DATA);
        if (data < 0 || static_cast<size_t>(data) >= end)
            return data >= 0 || errno == ENXIO;
        const off_t hole = lseek(memory_fd, data, SEEK_HOLE);
        if (hole < 0)
            return false;
        at = std::min(static_cast<size_t>(hole), end);
        const size_t from = static_cast<size_t>(data);
        if (!os::read_all(memory_fd, copy + (from - begin), at - from, from))
            return false;
    }
    return true;
}

// Words are copied here, because sanitizers would object in memcpy to the gaps between the program's variables.
__attribute__((no_sanitize("address", "thread"))) void copy_page(char* to, uintptr_t from, size_t bytes) {
    auto* const words = reinterpret_cast<uint64_t*>(to);
    const auto* const source = reinterpret_cast<const uint64_t*>(from);
    for (size_t i = 0; i < bytes / sizeof *words; ++i) {
        words[i] = source[i];
        __asm__ volatile("" ::: "memory");  // keeps the compiler from making it a memcpy
    }
}

// For a program that has closed the descriptor. Pages that the program has made unreadable stay zero in the copy.
void copy_from_memory(const StaticRange::Part& part, char* copy) {
    const size_t page_bytes = os::page_bytes();
    for (uintptr_t at = part.begin; at < part.end;) {
        unsigned char flags[os::kPagesAtOnce];
        const size_t pages = std::min((part.end - at) / page_bytes, os::kPagesAtOnce);
        os::look_for_resident_pages(at, pages, flags);
        for (size_t i = 0; i < pages; ++i, at += page_bytes)
            if (flags[i] & 1 && os::is_readable(at))
                copy_page(copy + (at - part.begin), at, page_bytes);
    }
}

void find_guarded() {
    n_guarded = 0;
    for (const StaticRange::Part& part : shared->parts) {
        os::Mapping* const mine = guarded + n_guarded;
        const size_t room = kMaxProtected - n_guarded;
        const size_t told = os::read_mappings(part.begin, part.end, mine, room);
        const size_t count = told == os::kNoMaps ? 0 : std::min(told, room);
        const auto is_plain = [](const os::Mapping& mapping) { return mapping.protection == (PROT_READ | PROT_WRITE); };
        n_guarded += static_cast<size_t>(std::remove_if(mine, mine + count, is_plain) - mine);
    }
}

void take_snapshot() {
    const size_t bytes = snapshot_bytes();
    const bool has_file = os::identify(memory_fd) == memory_file;
    snapshot = static_cast<char*>(os::reserve_zeroes(bytes));
    if (snapshot && !os::make_writable(snapshot, bytes))
        drop_snapshot();
    missing = "no address space for it";
    missing_error = errno;
    char* copy = snapshot;
    for (const StaticRange::Part& part : shared->parts) {
        if (!snapshot)
            return;
        if (!has_file) {
            copy_from_memory(part, copy);
        } else if (!copy_from_file(part, copy)) {
            missing = "it cannot be read";
            missing_error = errno;
            drop_snapshot();
        }
        copy += part.bytes();
    }
}

bool place_snapshot() {
    char* copy = snapshot;
    for (const StaticRange::Part& part : shared->parts) {
        if (!copy)
            return false;
        if (mremap(copy, part.bytes(), part.bytes(), MREMAP_MAYMOVE | MREMAP_FIXED,
                   reinterpret_cast<void*>(part.begin)) == MAP_FAILED) {
            missing = "it cannot be mapped";
            missing_error = errno;
            return false;
        }
        os::set_dumped(reinterpret_cast<void*>(part.begin), part.bytes(), true);
        copy += part.bytes();
    }
    for (size_t i = 0; i < n_guarded; ++i)
        mprotect(reinterpret_cast<void*>(guarded[i].begin), guarded[i].end - guarded[i].begin, guarded[i].protection);
    return true;
}

void before_fork() {
    pthread_mutex_lock(&lock);
    if (!is_shared)
        return;
    find_guarded();
    take_snapshot();
}

void after_fork_in_parent() {
    drop_snapshot();
    pthread_mutex_unlock(&lock);
}

void after_fork_in_child() {
    // Without the copy the child must not continue: its writes would reach its parent's variables.
    if (is_shared && !place_snapshot()) {
        base::complain("fork", "the child has no copy of its parent's static data (%s: %s), and is ended", missing,
                       strerror(missing_error));
        _exit(1);
    }
    const NodeMemory& node = node_memory;
    if (node.base)
        os::make_private(node.base, node.layout.total_bytes, os::identify(node.fd) == memory_file ? node.fd : -1, 0);
    is_shared = false;
    snapshot = nullptr;
    pthread_mutex_unlock(&lock);
    if (begin_child)
        begin_child();
}

__attribute__((constructor)) void register_handlers() {
    if (pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) != 0)
        base::fatal("fork", "its handlers cannot be registered: %s", strerror(ENOMEM));
}

}  // namespace

NoForks::NoForks() {
    pthread_mutex_lock(&lock);
}

NoForks::~NoForks() {
    pthread_mutex_unlock(&lock);
}

void run_in_children(void (*begin)()) {
    const NoForks no_forks;
    begin_child = begin;
}

void keep_from_children(const StaticRange* range, int fd, size_t offset) {
    shared = range;
    is_shared = true;
    memory_fd = fd;
    file_offset = offset;
    memory_file = os::identify(fd);
}

}  // namespace heddle::memory
