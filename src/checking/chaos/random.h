// Numbers drawn from a seed. The same seed gives the same numbers on every machine. Threads: one at a time.
#pragma once

#include <cstdint>

namespace heddle::checking {

// The finalizer of splitmix64 (G. Steele, D. Lea, C. Flood 2014).
inline uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

class Random {
  public:
    constexpr Random() = default;
    explicit Random(uint64_t seed) : state_(mix(seed + kGolden)) {}

    uint64_t next() { return mix(state_ += kGolden); }
    // A number from 0 to n - 1; n: 1 or more.
    uint64_t below(uint64_t n) { return static_cast<uint64_t>(static_cast<Wide>(next()) * n >> 64); }
    // True once in n draws.
    bool one_in(uint64_t n) { return below(n) == 0; }

  private:
    __extension__ typedef unsigned __int128 Wide;
    static constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;

    uint64_t state_ = 0;
};

}  // namespace heddle::checking
