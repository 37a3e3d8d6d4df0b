// Vectors of many megabytes, on huge pages where the kernel gives some: a random access then misses the TLB less often.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

namespace shmem_mt {

template <typename T>
struct LargeMemory {
    using value_type = T;

    LargeMemory() = default;
    template <typename U>
    LargeMemory(const LargeMemory<U>&) {}

    T* allocate(size_t count) {
        const bool large = count * sizeof(T) > kHugePage;
        const size_t bytes = (count * sizeof(T) + kHugePage - 1) / kHugePage * kHugePage;
        void* memory = large ? std::aligned_alloc(kHugePage, bytes) : std::malloc(count * sizeof(T));
        if (memory == nullptr)
            throw std::bad_alloc();
        if (large)
            madvise(memory, bytes, MADV_HUGEPAGE);  // without it only slower
        return static_cast<T*>(memory);
    }

    void deallocate(T* memory, size_t) { std::free(memory); }

    template <typename U>
    bool operator==(const LargeMemory<U>&) const {
        return true;
    }
    template <typename U>
    bool operator!=(const LargeMemory<U>&) const {
        return false;
    }

  private:
    static constexpr size_t kHugePage = 2 << 20;
};

template <typename T>
using LargeVector = std::vector<T, LargeMemory<T>>;

}  // namespace shmem_mt
