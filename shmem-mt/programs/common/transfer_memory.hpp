// The memory that messages between two PEs go through: windows in the symmetric heap or in static data, and private
// buffers.
#pragma once

#include <vector>

#include "programs/common/job.hpp"

namespace shmem_mt {

// Static symmetric memory for the windows of placement "static".
constexpr long kStaticBytes = 1L << 20;
alignas(4096) inline char static_window[kStaticBytes];

// Windows and private buffers for all points of a program, allocated once for the largest. A point divides
// them into regions of its own size, one a thread.
class TransferMemory {
  public:
    // `bytes`: the largest region of any point. Collective.
    TransferMemory(const Job& job, long bytes)
        : heap_(static_cast<char*>(symmetric_alloc(static_cast<size_t>(bytes * job.threads())))),
          local_(static_cast<size_t>(bytes * job.threads() + 4096)) {
        const size_t misaligned = reinterpret_cast<size_t>(local_.data()) % 4096;
        local_start_ = local_.data() + (misaligned ? 4096 - misaligned : 0);
    }

    char* window(bool on_heap) { return on_heap ? heap_ : static_window; }
    char* local() { return local_start_; }

  private:
    char* heap_;
    std::vector<char> local_;
    char* local_start_ = nullptr;
};

// Both ends of so many bytes have their pages when it returns, so that no timed pass waits for them.
inline void touch_pages(TransferMemory& memory, long bytes, int pe) {
    shmem_putmem(memory.window(true), memory.local(), static_cast<size_t>(bytes), pe);
    shmem_quiet();
}

}  // namespace shmem_mt
