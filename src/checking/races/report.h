// Report: a race as text, and which races the job has reported already. Threads: any.
#pragma once

#include "base/call.h"
#include "checking/races/detector.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace heddle::checking::races {

// The text of a race. earlier, later: the calls. object: what the memory is; of private memory unused.
std::string describe(const Race& race, const base::CallText& earlier, const base::CallText& later,
                     const std::string& object);

// What would have ordered both: "missing: shmem_quiet on PE 0 ...".
std::string describe_cure(const Race& race);

// The pairs of calls that the job has reported, in shared memory that begins zeroed. Bounded: a pair for which there is
// no room is reported again.
class Reported {
  public:
    static constexpr size_t kPairs = 4096;
    static constexpr size_t kBytes = kPairs * sizeof(uint64_t);

    explicit Reported(char* memory) : pairs_(reinterpret_cast<std::atomic<uint64_t>*>(memory)) {}
    // True the first time of a pair, in either order.
    bool is_new(const base::CallText& one, const base::CallText& other);

  private:
    std::atomic<uint64_t>* pairs_;
};

}  // namespace heddle::checking::races
