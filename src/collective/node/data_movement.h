// The collectives that move data: broadcast, collect, fcollect, alltoall, alltoalls (section 9.9), over a team or an
// active set.
//
// dest and source are symmetric and the same on all members; dest is ready on all before any member calls. Counts are
// elements of element_bytes. All functions return 0: an error ends the PE with a message.
#pragma once

#include "collective/collective_call.h"

namespace heddle::collective {

// In an active set the root's dest is not written, as the specification says.
int broadcast(const Call& call, const Group& group, void* dest, const void* source, size_t nelems, size_t element_bytes,
              int root);
int collect(const Call& call, const Group& group, void* dest, const void* source, size_t nelems, size_t element_bytes);
int fcollect(const Call& call, const Group& group, void* dest, const void* source, size_t nelems, size_t element_bytes);
int alltoall(const Call& call, const Group& group, void* dest, const void* source, size_t nelems, size_t element_bytes);
int alltoalls(const Call& call, const Group& group, void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst,
              size_t nelems, size_t element_bytes);

}  // namespace heddle::collective
