// The problem of minife: steady heat conduction in the unit cube, without sources. The face x = 1 has the temperature
// f(y, z), a sum of waves w sin(p pi y) sin(q pi z); the other faces are cold. Two solutions are known; each differs
// from f in a factor sinh(s x) / sinh(s) of each wave.
//
// Of the heat equation: s = pi sqrt(p^2 + q^2). The nodes of a mesh of N x N x N trilinear elements differ from it by
// 1.08 h^2 in the limit, h = 1 / N, and by 1.16 h^2 at most for all N.
//
// Of the equations of that mesh: they are a sum over the axes of products of stiffness and mass along lines, of which
// the waves are eigenvectors, with the quotient g(p) = 6 (1 - cos(p pi h)) / (2 + cos(p pi h)) of the two (over h^2).
// So s = N acosh((1 + A / 3) / (1 - A / 6)) with A = g(p) + g(q), which must be less than 6: N is 5 or more.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "apps/minife/mesh.hpp"

namespace shmem_mt {

class FeHeat {
  public:
    static constexpr long kLeastEdge = 5;
    static constexpr double kError = 1.2;  // of the mesh, over h^2

    explicit FeHeat(long edge) {
        const double h = 1 / static_cast<double>(edge);
        const auto quotient = [&](double waves) {
            const double cosine = std::cos(waves * kPi * h);
            return 6 * (1 - cosine) / (2 + cosine);
        };
        for (Wave& wave : waves_) {
            const double sum = quotient(wave.p) + quotient(wave.q);
            wave.rate = kPi * std::sqrt(wave.p * wave.p + wave.q * wave.q);
            wave.mesh_rate = std::acosh((1 + sum / 3) / (1 - sum / 6)) / h;
        }
    }

    // The temperature that is given at a point; no number inside of the cube.
    double given(const FePoint& at) const {
        if (at[0] == 1)
            return solution(at);
        const bool outside = std::any_of(at.begin(), at.end(), [](double x) { return x == 0 || x == 1; });
        return outside ? 0 : std::numeric_limits<double>::quiet_NaN();
    }

    // Of the heat equation, and of the equations of the mesh.
    double solution(const FePoint& at) const { return sum(at, &Wave::rate); }
    double mesh_solution(const FePoint& at) const { return sum(at, &Wave::mesh_rate); }

  private:
    static constexpr double kPi = 3.14159265358979323846;

    struct Wave {
        double p, q, weight;
        double rate = 0, mesh_rate = 0;
    };

    double sum(const FePoint& at, double Wave::* rate) const {
        double sum = 0;
        for (const Wave& wave : waves_)
            sum +=
                wave.weight * std::sin(wave.p * kPi * at[1]) * std::sin(wave.q * kPi * at[2]) * rise(wave.*rate, at[0]);
        return sum;
    }

    // sinh(rate x) / sinh(rate), without large numbers.
    static double rise(double rate, double x) {
        return std::exp(rate * (x - 1)) * std::expm1(-2 * rate * x) / std::expm1(-2 * rate);
    }

    // Unlike along y and z, so that conjugate gradients have more than one to find.
    Wave waves_[3] = {{1, 1, 1}, {1, 2, 0.5}, {3, 1, 0.25}};
};

}  // namespace shmem_mt
