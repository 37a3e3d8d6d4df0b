// Copier: the copies of a collective on a node, past the caches when its data would not fit.
#pragma once

#include "collective/node/kernels.h"

#include <cstring>

namespace heddle::collective {

// The choices of init for this PE: the kernels of its vector unit, and the size of the last-level cache.
struct Machine {
    const KernelTable* kernels = nullptr;
    size_t cache_bytes = 0;
};
extern HEDDLE_PE_LOCAL Machine machine;

class Copier {
  public:
    // all_bytes: what all members read and write in the operation. If more than the cache holds, long pieces bypass it.
    explicit Copier(size_t all_bytes) : streams_(all_bytes > machine.cache_bytes) {}

    // Copies, unless to equals from.
    void operator()(char* to, const char* from, size_t bytes) const {
        if (bytes == 0 || to == from)
            return;
        if (streams_ && bytes >= kLongBytes)
            machine.kernels->stream(to, from, bytes);
        else
            memcpy(to, from, bytes);
    }

    bool streams() const { return streams_; }

  private:
    static constexpr size_t kLongBytes = 4096;
    bool streams_;
};

// Copies nelems elements that lie to_step and from_step bytes apart.
template <size_t kBytes>
void copy_strided(char* to, const char* from, size_t to_step, size_t from_step, size_t nelems) {
    for (size_t i = 0; i < nelems; ++i) memcpy(to + i * to_step, from + i * from_step, kBytes);
}

inline void copy_strided(char* to, const char* from, size_t to_step, size_t from_step, size_t nelems,
                         size_t element_bytes) {
    switch (element_bytes) {
        case 1:
            return copy_strided<1>(to, from, to_step, from_step, nelems);
        case 2:
            return copy_strided<2>(to, from, to_step, from_step, nelems);
        case 4:
            return copy_strided<4>(to, from, to_step, from_step, nelems);
        case 8:
            return copy_strided<8>(to, from, to_step, from_step, nelems);
        case 16:
            return copy_strided<16>(to, from, to_step, from_step, nelems);
        default:
            for (size_t i = 0; i < nelems; ++i) memcpy(to + i * to_step, from + i * from_step, element_bytes);
    }
}

}  // namespace heddle::collective
