// The shared memory of a search for races, zeroed, and committed where it is used.
#pragma once

#include "checking/races/detector.h"

#include <sys/mman.h>
#include <cstddef>

namespace heddle::checking::races {

constexpr size_t kPositions = 1 << 20;

class SearchMemory {
  public:
    explicit SearchMemory(int n_pes) : bytes_(Detector::bytes(kPositions, n_pes)) {
        at_ = static_cast<char*>(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    }
    ~SearchMemory() { munmap(at_, bytes_); }
    SearchMemory(const SearchMemory&) = delete;
    SearchMemory& operator=(const SearchMemory&) = delete;
    char* get() const { return at_; }

  private:
    const size_t bytes_;
    char* at_;
};

}  // namespace heddle::checking::races
