// Memory without a name, and mappings of it. Errors are negative errno values; nothing here prints.
#pragma once

#include <cstddef>

namespace heddle::os {

// The unit of mappings: 4 KiB, and on aarch64 16 or 64 KiB where the kernel was built so.
size_t page_bytes() __attribute__((const));
constexpr size_t round_up(size_t bytes, size_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

// A descriptor of new anonymous memory, closed on exec; or a negative errno.
int create_memory(const char* label, size_t bytes);

// Gives fd's memory a size: 0, or a negative errno. RLIMIT_FSIZE holds for it, too: EFBIG, without the signal.
int set_memory_size(int fd, size_t bytes);

// What an errno of the functions here means, with the limit that a user could raise.
const char* describe_memory_error(int error);

// Maps [offset, offset + bytes) of fd, shared and writable; at `address` when not null (over what is there). Null on
// failure.
void* map_shared(int fd, size_t offset, size_t bytes, void* address = nullptr);

// The same, but neither committed nor locked where the process has called mlockall(MCL_FUTURE).
void* map_shared_unlocked(int fd, size_t offset, size_t bytes, void* address);

// Address space that reads as zero and costs no memory until written, under mlockall(MCL_FUTURE) neither; null when
// refused.
void* reserve_zeroes(size_t bytes);

// Takes exactly [address, address + bytes) of the address space, without access; false when something is there.
bool reserve_at(void* address, size_t bytes);
// Address space that cannot be read until make_readable.
void* reserve(size_t bytes);
bool make_readable(void* address, size_t bytes);

// Makes [address, address + bytes), whole pages of a reservation, writable. False on failure.
bool make_writable(void* address, size_t bytes);

// New memory of `bytes`, whole pages, twice in a row: what runs past the end of the first is at the beginning of the
// same memory. Null when refused; unmap(address, 2 * bytes) gives it back.
void* map_twice(size_t bytes);

// Moves all bytes between memory and fd at offset, or returns false. As system calls: sanitizers would object to what
// lies between a program's variables.
bool read_all(int fd, char* memory, size_t bytes, size_t offset);
bool write_all(int fd, const char* memory, size_t bytes, size_t offset);

// Gives [address, address + bytes), whole pages of a reservation or mapping, back to the system.
void unmap(void* address, size_t bytes);

// Whether core dumps and debuggers' gcore read [address, address + bytes), whole pages. What they read of shared memory
// is committed.
void set_dumped(void* address, size_t bytes, bool dumped);

// What the process has asked for its future memory (mlockall): nothing, pages locked as they are touched
// (MCL_FUTURE | MCL_ONFAULT), or all committed and locked at once (MCL_FUTURE).
enum class Locking { kNone, kOnFault, kAtOnce };
Locking locking_of_new_memory();

// Locks [address, address + bytes), whole pages, as asked; 0, or a negative errno.
int lock_memory(void* address, size_t bytes, Locking locking);
void unlock_memory(void* address, size_t bytes);

}  // namespace heddle::os
