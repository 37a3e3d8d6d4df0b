// When conjugate gradients stop moving x.
#pragma once

namespace shmem_mt {

// Whether |r| has fallen by a factor of 1e12: what rounding has left must not be divided by. The remaining iterations
// compute as much, but do not move x. False when rho is no number.
inline bool settled(double rho, double first_rho) {
    return rho <= 1e-24 * first_rho;
}

}  // namespace shmem_mt
