// PEs in a three-dimensional grid that closes upon itself in every direction.
#pragma once

#include <array>

namespace shmem_mt {

using Place = std::array<int, 3>;  // x, y, z; x runs fastest

// The factors of n that lie closest together, the largest first: 8 is 2 x 2 x 2, 12 is 3 x 2 x 2, 7 is 7 x 1 x 1.
inline Place grid_of(int n) {
    Place best = {n, 1, 1};
    for (int z = 1; z * z * z <= n; ++z) {
        for (int y = z; n % z == 0 && y * y <= n / z; ++y) {
            const int x = n / z / y;
            if (n / z % y == 0 && x + y + z < best[0] + best[1] + best[2])
                best = {x, y, z};
        }
    }
    return best;
}

inline Place place_of(const Place& grid, int pe) {
    return {pe % grid[0], pe / grid[0] % grid[1], pe / grid[0] / grid[1]};
}

// The neighbour of the PE at `place` one step along `axis`, forwards (step 1) or backwards (-1).
inline int neighbour(const Place& grid, Place place, int axis, int step) {
    const size_t a = static_cast<size_t>(axis);
    place[a] = (place[a] + step + grid[a]) % grid[a];
    return (place[2] * grid[1] + place[1]) * grid[0] + place[0];
}

}  // namespace shmem_mt
