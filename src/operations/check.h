// The checks of the slow path, and their messages. Nothing here runs on the hot path.
//
// The slow path checks the state of the library, the context, the PE and the addresses of every operation. A checked
// run (HEDDLE_CHECK=1) sends every operation here, and adds checks that cost more: freed memory, overlap, alignment,
// symmetric variables of waits. A failed check ends the PE; the message names PE, function, argument, value and what
// would be right. Threads: any.
#pragma once

#include <heddle/abi.h>
#include <cstddef>

namespace heddle::operations {

// Ends the PE unless called between init and finalize.
void require_running(const char* function);

// For calls that only free something. False in a forked child, where exit handlers and destructors of the parent may
// run: that is no error, and there is nothing to free. Otherwise require_running, and true.
bool may_give_back(const char* function);

// require_running; then ends the PE unless ctx is a context and pe is in range of its team. Returns pe's number in the
// world.
int require_target(const char* function, shmem_ctx_t ctx, int pe);

// Delivers later stores on ctx after earlier ones if ctx keeps order (SHMEMX_CTX_ORDERED).
void keep_order(shmem_ctx_t ctx);

// The bytes of nelems elements; ends the PE when they exceed an address space.
size_t extent(const char* function, size_t nelems, size_t element_bytes);

// The address at which this PE reaches [address, address + bytes) of pe; null on another node (remote.h). Ends the PE
// unless the range lies in one symmetric region. `argument`: the parameter's name. pe: of the world (require_target).
char* require_symmetric(const char* function, const char* argument, const void* address, size_t bytes, int pe);

// require_symmetric for an atomic of `bytes`, which must be aligned to its size.
char* require_atomic(const char* function, const char* argument, const void* address, size_t bytes, int pe);

// Ends the PE when address is null.
void require_pointer(const char* function, const char* argument, const void* address);

// Ends the PE when [to, to + bytes) and [from, from + bytes) share a byte.
void require_disjoint(const char* function, const void* to, const void* from, size_t bytes);

// Ends the PE unless cmp is one of SHMEM_CMP_EQ to SHMEM_CMP_LE.
void require_comparison(const char* function, int cmp);

// In a checked run: ends the PE unless ivars is the local address of nelems symmetric elements. `argument`: the
// parameter's name.
void check_ivars(const char* function, const char* argument, const void* ivars, size_t nelems, size_t element_bytes);

}  // namespace heddle::operations
