// memfd: anonymous memory files, and mappings of them. Errors are negative errno values; nothing here prints.
#pragma once

#include <cstddef>

namespace heddle::os {

// The unit of mappings: 4 KiB; on aarch64 also 16 or 64 KiB, as the kernel was built.
size_t page_bytes() __attribute__((const));
constexpr size_t round_up(size_t bytes, size_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

// A descriptor of new anonymous memory, closed on exec; or a negative errno.
int create_memory(const char* label, size_t bytes);

// Sets the size of fd's memory; 0, or a negative errno. Beyond RLIMIT_FSIZE: -EFBIG, without the signal.
int set_memory_size(int fd, size_t bytes);

// The meaning of an errno of the functions here, with the limit that a user could raise.
const char* describe_memory_error(int error);

// Maps [offset, offset + bytes) of fd, shared and writable; at `address` if not null, in place of any mapping there.
// Null on failure.
void* map_shared(int fd, size_t offset, size_t bytes, void* address = nullptr);

// map_shared that neither commits nor locks pages, even if the process has called mlockall(MCL_FUTURE).
void* map_shared_unlocked(int fd, size_t offset, size_t bytes, void* address);

// Address space that reads as zero and takes no memory until written, even under mlockall(MCL_FUTURE); null when
// refused.
void* reserve_zeroes(size_t bytes);

// Reserves exactly [address, address + bytes), without access; false when something is mapped there.
bool reserve_at(void* address, size_t bytes);
// Address space that cannot be read until make_readable.
void* reserve(size_t bytes);
bool make_readable(void* address, size_t bytes);

// Makes [address, address + bytes), whole pages of a reservation, writable. False on failure.
bool make_writable(void* address, size_t bytes);

// Moves all bytes between memory and fd at offset; false on failure. With system calls, because sanitizers would object
// to the gaps between a program's variables.
bool read_all(int fd, char* memory, size_t bytes, size_t offset);
bool write_all(int fd, const char* memory, size_t bytes, size_t offset);

// Frees [address, address + bytes), whole pages of a reservation or mapping.
void unmap(void* address, size_t bytes);

// Includes [address, address + bytes), whole pages, in core dumps and debuggers' gcore, or leaves it out. Shared memory
// that a dump reads is committed.
void set_dumped(void* address, size_t bytes, bool dumped);

// What the process has asked for its future memory with mlockall: nothing, pages locked as they are touched (MCL_FUTURE
// | MCL_ONFAULT), or all committed and locked at once (MCL_FUTURE).
enum class Locking { kNone, kOnFault, kAtOnce };
Locking locking_of_new_memory();

// Locks [address, address + bytes), whole pages, as asked; 0, or a negative errno.
int lock_memory(void* address, size_t bytes, Locking locking);
void unlock_memory(void* address, size_t bytes);

}  // namespace heddle::os
