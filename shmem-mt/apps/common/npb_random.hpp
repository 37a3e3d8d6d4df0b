// The pseudo-random numbers of the NAS Parallel Benchmarks: x -> 5^13 x modulo 2^46, as fractions of 2^46. Every
// machine draws the same numbers.
#pragma once

#include <cstdint>

namespace shmem_mt {

class NpbRandom {
  public:
    // In (0, 1).
    double next() {
        state_ = state_ * kFactor & (kModulus - 1);
        return static_cast<double>(state_) / static_cast<double>(kModulus);  // exact: 46 bits fit into a double
    }

    // As if next() had been called so many times.
    void skip(uint64_t count) {
        for (uint64_t power = kFactor; count > 0; count /= 2, power *= power) {
            if (count % 2 != 0)
                state_ = state_ * power & (kModulus - 1);  // what overflows is above the modulus
        }
    }

  private:
    static constexpr uint64_t kFactor = 1220703125;  // 5^13
    static constexpr uint64_t kModulus = uint64_t{1} << 46;
    uint64_t state_ = 314159265;
};

}  // namespace shmem_mt
