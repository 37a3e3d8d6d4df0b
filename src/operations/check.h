// The checks of the slow path, and their messages. Nothing here runs on the hot path.
//
// Every operation that comes here has its state, context, PE and addresses checked; a checked run (HEDDLE_CHECK=1),
// which sends all of them here, adds what costs more: freed memory, overlap, alignment, symmetric variables of waits. A
// failed check ends the PE with a message that names PE, function, argument, value and what would be right. Any thread.
#pragma once

#include <heddle/abi.h>
#include <cstddef>

namespace heddle::operations {

// Ends the PE unless it is between init and finalize.
void require_running(const char* function);

// For calls that only give something back. False in a forked child, which has nothing to give: its exit handlers and
// destructors are its parent's, and no mistake. Otherwise require_running, and true.
bool may_give_back(const char* function);

// require_running, and a context that is one, and pe in range of the context's team. Returns the PE's number in the
// world.
int require_target(const char* function, shmem_ctx_t ctx, int pe);

// What is stored for ctx from here on is delivered after what was before, where ctx keeps order: SHMEMX_CTX_ORDERED.
void keep_order(shmem_ctx_t ctx);

// The bytes of nelems elements; ends the PE when that is more than an address space.
size_t extent(const char* function, size_t nelems, size_t element_bytes);

// Where this PE reaches [address, address + bytes) of pe, which must lie in one symmetric region; null when it does not
// (remote.h). `argument` is the parameter's name; pe is of the world: require_target returns it.
char* require_symmetric(const char* function, const char* argument, const void* address, size_t bytes, int pe);

// require_symmetric for an atomic of `bytes`, which must be aligned to its size.
char* require_atomic(const char* function, const char* argument, const void* address, size_t bytes, int pe);

// Ends the PE when address is null.
void require_pointer(const char* function, const char* argument, const void* address);

// Ends the PE when [to, to + bytes) and [from, from + bytes) share a byte.
void require_disjoint(const char* function, const void* to, const void* from, size_t bytes);

// Ends the PE unless cmp is one of SHMEM_CMP_EQ to SHMEM_CMP_LE.
void require_comparison(const char* function, int cmp);

// In a checked run: ends the PE unless ivars, which the program calls `argument`, is the local address of nelems
// symmetric elements.
void check_ivars(const char* function, const char* argument, const void* ivars, size_t nelems, size_t element_bytes);

}  // namespace heddle::operations
