// Memory without a name, and mappings of it. Errors are negative errno values; nothing here prints.
#pragma once

#include <cstddef>

namespace heddle::os {

constexpr size_t kPageBytes = 4096;  // of both architectures as we configure them; checked at init

constexpr size_t round_up(size_t bytes, size_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

// A descriptor of new anonymous memory, closed on exec; or a negative errno.
int create_memory(const char* label, size_t bytes);

// Maps [offset, offset + bytes) of fd, shared and writable; at `address` when not null (over what is there). Null on
// failure.
void* map_shared(int fd, size_t offset, size_t bytes, void* address = nullptr);

// Address space that reads as zero and costs no memory until written; null when refused.
void* reserve_zeroes(size_t bytes);

// Takes exactly [address, address + bytes) of the address space, without access; false when something is there.
bool reserve_at(void* address, size_t bytes);

// Makes [address, address + bytes), whole pages of a reservation, writable. False on failure.
bool make_writable(void* address, size_t bytes);

// New memory of `bytes`, whole pages, twice in a row: what runs past the end of the first is at the beginning of the
// same memory. Null when refused; unmap(address, 2 * bytes) gives it back.
void* map_twice(size_t bytes);

// Gives [address, address + bytes), whole pages of a reservation or mapping, back to the system.
void unmap(void* address, size_t bytes);

}  // namespace heddle::os
