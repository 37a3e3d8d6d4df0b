// The stiffness of a hexahedron for steady heat conduction with conductivity 1: trilinear shape functions, integrated
// at 2 x 2 x 2 Gauss points. The corners may lie anywhere.
#pragma once

#include <array>
#include <cstddef>

#include "apps/minife/mesh.hpp"

namespace shmem_mt {

using FeStiffness = std::array<std::array<double, 8>, 8>;

// The derivatives of the shape functions at the Gauss points, in the coordinates of the reference element [-1, 1]^3.
struct FeShapes {
    double gradients[8][8][3];  // point, corner, axis

    FeShapes() {
        constexpr double kGauss = 0.57735026918962576451;  // 1 / sqrt(3)
        for (unsigned point = 0; point < 8; ++point) {
            for (unsigned corner = 0; corner < 8; ++corner) {
                double factors[3], slopes[3];
                for (unsigned axis = 0; axis < 3; ++axis) {
                    const double side = corner >> axis & 1 ? 1 : -1;
                    factors[axis] = (1 + side * (point >> axis & 1 ? kGauss : -kGauss)) / 2;
                    slopes[axis] = side / 2;
                }
                for (unsigned axis = 0; axis < 3; ++axis)
                    gradients[point][corner][axis] = slopes[axis] * factors[(axis + 1) % 3] * factors[(axis + 2) % 3];
            }
        }
    }
};

// `corners`: the coordinates of the element's nodes.
inline FeStiffness stiffness(const FeShapes& shapes, const std::array<FePoint, 8>& corners) {
    FeStiffness sum{};
    for (const auto& gradients : shapes.gradients) {
        double jacobian[3][3] = {};  // of the point's coordinates by those of the reference element
        for (size_t corner = 0; corner < 8; ++corner) {
            for (size_t i = 0; i < 3; ++i) {
                for (size_t j = 0; j < 3; ++j) jacobian[i][j] += corners[corner][i] * gradients[corner][j];
            }
        }
        double cofactors[3][3];
        for (size_t i = 0; i < 3; ++i) {
            for (size_t j = 0; j < 3; ++j) {
                const size_t i1 = (i + 1) % 3, i2 = (i + 2) % 3, j1 = (j + 1) % 3, j2 = (j + 2) % 3;
                cofactors[i][j] = jacobian[i1][j1] * jacobian[i2][j2] - jacobian[i1][j2] * jacobian[i2][j1];
            }
        }
        const double determinant =
            jacobian[0][0] * cofactors[0][0] + jacobian[0][1] * cofactors[0][1] + jacobian[0][2] * cofactors[0][2];
        double in_space[3][8];  // axis, corner; times the determinant
        for (size_t i = 0; i < 3; ++i) {
            for (size_t corner = 0; corner < 8; ++corner) {
                in_space[i][corner] = cofactors[i][0] * gradients[corner][0] + cofactors[i][1] * gradients[corner][1] +
                                      cofactors[i][2] * gradients[corner][2];
            }
        }
        const double weight = 1 / determinant;
        for (size_t a = 0; a < 8; ++a) {
            const double x = weight * in_space[0][a], y = weight * in_space[1][a], z = weight * in_space[2][a];
            for (size_t b = 0; b < 8; ++b) sum[a][b] += x * in_space[0][b] + y * in_space[1][b] + z * in_space[2][b];
        }
    }
    return sum;
}

}  // namespace shmem_mt
