// Reductions and prefix sums (section 9.9). Each element is combined in one order (collective/reduction_order.h; prefix
// sums: that of the members' ranks), whatever the algorithm and the timing: the same input on the same members gives
// the same bits, on all of them.
#pragma once

#include "collective/collective_call.h"
#include "collective/node/copy.h"

namespace heddle::collective {

enum class Prefix { kInclusive, kExclusive };

int reduce(const Call& call, const Group& group, Op op, Kind kind, void* dest, const void* source, size_t nelems,
           size_t element_bytes);
int scan(const Call& call, const Group& group, Prefix prefix, Kind kind, void* dest, const void* source, size_t nelems,
         size_t element_bytes);

template <class T>
int reduce(const Call& call, const Group& group, Op op, T* dest, const T* source, size_t nelems) {
    return reduce(call, group, op, kind_of<T>(), dest, source, nelems, sizeof(T));
}

// The deprecated form counts in int; a negative count ends the PE. pWrk is not used.
size_t require_count(const Call& call, int nreduce);
template <class T>
void reduce_to_all(const Call& call, const Group& group, Op op, T* dest, const T* source, int nreduce) {
    reduce(call, group, op, dest, source, require_count(call, nreduce));
}

template <class T>
int scan(const Call& call, const Group& group, Prefix prefix, T* dest, const T* source, size_t nelems) {
    return scan(call, group, prefix, kind_of<T>(), dest, source, nelems, sizeof(T));
}

}  // namespace heddle::collective
