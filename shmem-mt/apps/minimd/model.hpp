// The problem of MiniMD in reduced units: atoms on an FCC lattice in a periodic cube, random velocities, Lennard-Jones
// forces, and the sums over all atoms. Independent of PEs: everything here has the same bits on each of them.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "programs/common/validation.hpp"

namespace shmem_mt {

using Vector = std::array<double, 3>;

constexpr double kDensity = 0.8442, kTemperature = 1.44, kTimeStep = 0.005;
constexpr double kCutoff = 2.5, kSkin = 0.3, kListCutoff = kCutoff + kSkin;
constexpr int kListSteps = 20;     // from one list of neighbours to the next
constexpr int kThermoSteps = 100;  // from one line of thermodynamics to the next
constexpr long kMostCells = 256;   // along an edge

struct Atom {
    Vector at, velocity;
    int64_t id;
};

// What all atoms add up to. A pair counts once.
struct MdSums {
    double squares = 0;    // of the velocities
    double potential = 0;  // not shifted at the cutoff
    double virial = 0;     // distance times force
    double pairs = 0;      // nearer than the cutoff
    double atoms = 0;
};

struct MdThermo {
    double temperature, pressure;
    double potential, energy;  // an atom; energy is potential and kinetic
    double conserved;          // energy, with a potential that is 0 at the cutoff: a pair that passes it adds nothing
};

// What a run comes to.
struct MdHistory {
    std::vector<MdThermo> thermo;  // at the beginning and after each kThermoSteps
    uint64_t state = 0;            // the sum of state_of() of all atoms at the end, within kStateMask
};

constexpr uint64_t kStateMask = (uint64_t{1} << 40) - 1;

// Every bit of an atom counts.
inline uint64_t state_of(const Atom& atom) {
    uint64_t state = 0;
    for (const Vector* const vector : {&atom.at, &atom.velocity}) {
        for (const double x : *vector) {
            long bits = 0;
            std::memcpy(&bits, &x, sizeof bits);
            state = pattern_word(bits, 0, static_cast<long>(state)) + static_cast<uint64_t>(atom.id);
        }
    }
    return state;
}

class MdModel {
  public:
    // `cells`, along an edge, of 4 atoms each: at most kMostCells. All PEs add up all speeds, in the order of atoms: the
    // sums round otherwise in another order, and then no velocity would have the bits that it has on one PE.
    explicit MdModel(long cells) : cells_(cells), atoms_(atoms_of(cells)), edge_(edge_of(cells)) {
        Vector sum{};
        double squares = 0;
        for (long id = 0; id < atoms_; ++id) {
            for (size_t axis = 0; axis < 3; ++axis) {
                const double speed = raw_speed(id, axis);
                sum[axis] += speed;
                squares += speed * speed;
            }
        }
        const double n = static_cast<double>(atoms_);
        for (size_t axis = 0; axis < 3; ++axis) {
            mean_[axis] = sum[axis] / n;
            squares -= sum[axis] * mean_[axis];
        }
        scale_ = std::sqrt(kTemperature * (3 * n - 3) / squares);
    }

    static long atoms_of(long cells) { return 4 * cells * cells * cells; }
    static double edge_of(long cells) { return static_cast<double>(cells) * lattice_constant(); }
    static double lattice_constant() { return std::cbrt(4 / kDensity); }

    long cells() const { return cells_; }
    long atoms() const { return atoms_; }
    double edge() const { return edge_; }

    // In [0, edge) along each axis.
    Vector lattice_site(long id) const {
        constexpr int kHalves[4][3] = {{0, 0, 0}, {1, 1, 0}, {1, 0, 1}, {0, 1, 1}};
        const long cell = id / 4;
        const long place[3] = {cell % cells_, cell / cells_ % cells_, cell / cells_ / cells_};
        Vector at{};
        for (size_t axis = 0; axis < 3; ++axis) {
            const long half = 2 * place[axis] + kHalves[id % 4][axis];
            at[axis] = static_cast<double>(half) * (edge_ / static_cast<double>(2 * cells_));
        }
        return at;
    }

    // Uniform, the momentum of all taken away, scaled to the temperature.
    Vector first_velocity(long id) const {
        Vector velocity{};
        for (size_t axis = 0; axis < 3; ++axis) velocity[axis] = scale_ * (raw_speed(id, axis) - mean_[axis]);
        return velocity;
    }

    MdThermo thermo(const MdSums& sums) const {
        const double n = static_cast<double>(atoms_);
        const double potential = sums.potential / n;
        const double energy = potential + sums.squares / (2 * n);
        return {sums.squares / (3 * n - 3), (sums.squares + sums.virial) / (3 * edge_ * edge_ * edge_), potential,
                energy, energy - sums.pairs * potential_at_cutoff() / n};
    }

  private:
    static double raw_speed(long id, size_t axis) {
        return static_cast<double>(pattern_word(0, id, static_cast<long>(axis)) >> 11) * 0x1p-53 - 0.5;
    }

    static double potential_at_cutoff() {
        const double sixth = 1 / (kCutoff * kCutoff * kCutoff * kCutoff * kCutoff * kCutoff);
        return 4 * sixth * (sixth - 1);
    }

    const long cells_, atoms_;
    const double edge_;
    Vector mean_{};
    double scale_ = 0;
};

}  // namespace shmem_mt
