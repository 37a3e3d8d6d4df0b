// Memory that nobody has written to yet. The kernel gives a page its place, in the memory of one NUMA domain, when a
// thread first writes to it: that of the thread's CPU. So what threads share is made untouched, and each thread writes
// first to what it will compute with (shmem-mt/docs/scaling.md).
#pragma once

#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "apps/common/range.hpp"
#include "programs/common/job.hpp"

namespace shmem_mt {

// Whole pages from the kernel, which are zero. Elements that are not given a value are left alone.
template <class T>
struct UntouchedAllocator {
    static_assert(std::is_trivial_v<T>, "an element is zero without being constructed");
    using value_type = T;

    UntouchedAllocator() = default;
    template <class U>
    UntouchedAllocator(const UntouchedAllocator<U>&) {}

    T* allocate(size_t count) {
        void* const memory =
            mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            throw std::bad_alloc();
        return static_cast<T*>(memory);
    }
    void deallocate(T* memory, size_t count) { munmap(memory, count * sizeof(T)); }

    template <class U>
    void construct(U*) {}
    template <class U, class... Arguments>
    void construct(U* place, Arguments&&... arguments) {
        ::new (static_cast<void*>(place)) U(std::forward<Arguments>(arguments)...);
    }

    friend bool operator==(const UntouchedAllocator&, const UntouchedAllocator&) { return true; }
    friend bool operator!=(const UntouchedAllocator&, const UntouchedAllocator&) { return false; }
};

// A vector that is made, or grows by resize(), without a write. Never smaller and then larger again: what was there
// would come back.
template <class T>
using Untouched = std::vector<T, UntouchedAllocator<T>>;

// symmetric_alloc, each thread of the PE writing to its share of the memory first. Collective; thread 0.
inline void* shared_symmetric_alloc(Job& job, size_t bytes) {
    void* const memory = symmetric_alloc_untouched(bytes);
    job.team().run([&](int thread) {
        const Range mine = Range{0, static_cast<long>(bytes)}.share(thread, job.threads());
        std::memset(static_cast<char*>(memory) + mine.begin, 0, static_cast<size_t>(mine.length()));
    });
    shmem_barrier_all();
    return memory;
}

}  // namespace shmem_mt
