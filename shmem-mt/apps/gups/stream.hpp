// The random numbers of the HPC Challenge's RandomAccess: each is the one before times t, as a polynomial over GF(2)
// modulo t^64 + t^2 + t + 1. Number 0 is 1.
#pragma once

#include <cstdint>

namespace shmem_mt {

class GupsStream {
  public:
    // Goes on behind this number.
    explicit GupsStream(uint64_t value) : value_(value) {}

    uint64_t next() { return value_ = times_t(value_); }

    // Number n; takes about 10 us.
    static uint64_t value_of(long n) {
        uint64_t power = 1, square = 2;  // 1 and t
        for (; n > 0; n /= 2, square = product(square, square)) {
            if (n % 2 != 0)
                power = product(power, square);
        }
        return power;
    }

  private:
    static uint64_t times_t(uint64_t a) { return a << 1 ^ (a >> 63) * 7; }

    static uint64_t product(uint64_t a, uint64_t b) {
        uint64_t sum = 0;
        for (; b != 0; b /= 2, a = times_t(a)) sum ^= b % 2 * a;
        return sum;
    }

    uint64_t value_;
};

}  // namespace shmem_mt
