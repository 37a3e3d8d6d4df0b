// The forces of Lennard-Jones on one atom, and what its pairs add to the sums. Four neighbours at a time, each in a sum
// of its own: the bits depend on the neighbours and their order alone, and are the same on every vector unit.
#pragma once

#include <cstdint>
#include <cstring>

#include "apps/common/vector_units.hpp"
#include "apps/minimd/model.hpp"

namespace shmem_mt {

constexpr long kMdLanes = 4;

// What an atom gets of all its pairs. The last three count each pair for both of its atoms.
struct MdPull {
    Vector force;
    double potential, virial, pairs;
};

// The neighbours of an atom, as places of their first coordinates; a multiple of kMdLanes of them, filled up with
// places beyond the cutoff.
struct MdList {
    const int32_t* begin;
    int32_t count;
};

// The force on the atom at `own` alone.
SHMEM_MT_VECTORS inline void md_force(const double* positions, const double* own, const MdList& list, MdPull* pull) {
    typedef double Four __attribute__((vector_size(sizeof(double) * kMdLanes)));
    typedef int64_t Mask __attribute__((vector_size(sizeof(int64_t) * kMdLanes)));
    const Four x = {own[0], own[0], own[0], own[0]}, y = {own[1], own[1], own[1], own[1]},
               z = {own[2], own[2], own[2], own[2]};
    Four force_x = {}, force_y = {}, force_z = {};
    for (const int32_t* at = list.begin; at < list.begin + list.count; at += kMdLanes) {
        const double *const a = positions + at[0], *const b = positions + at[1], *const c = positions + at[2],
                            *const d = positions + at[3];
        const Four dx = x - Four{a[0], b[0], c[0], d[0]}, dy = y - Four{a[1], b[1], c[1], d[1]},
                   dz = z - Four{a[2], b[2], c[2], d[2]};
        const Four squared = dx * dx + dy * dy + dz * dz;
        const Four inverse = 1 / squared;
        const Four sixth = inverse * inverse * inverse;
        const Four part = sixth * (sixth - 0.5) * inverse;  // a 48th of force over distance
        const Four within = (Four)((Mask)part & (squared < kCutoff * kCutoff));
        force_x += dx * within;
        force_y += dy * within;
        force_z += dz * within;
    }
    pull->force = {48 * ((force_x[0] + force_x[1]) + (force_x[2] + force_x[3])),
                   48 * ((force_y[0] + force_y[1]) + (force_y[2] + force_y[3])),
                   48 * ((force_z[0] + force_z[1]) + (force_z[2] + force_z[3]))};
}

// A stretch of atoms that lie one behind the other.
struct MdRow {
    int32_t begin, end;
};

// Writes down which atoms of the rows are within the reach of lists of the one at `own`, itself left out, and returns
// how many. x, y and z are those of all atoms, and kMdLanes more; `places` is what is written down of them. `into` has
// room for all atoms of the rows and kMdLanes more.
SHMEM_MT_VECTORS inline long md_near(const double* x, const double* y, const double* z, const int32_t* places,
                                     const MdRow* rows, long n_rows, const double* own, int32_t* into) {
    typedef double Four __attribute__((vector_size(sizeof(double) * kMdLanes)));
    typedef int64_t Mask __attribute__((vector_size(sizeof(int64_t) * kMdLanes)));
    const Four lane = {0, 1, 2, 3};
    long count = 0;
    for (long r = 0; r < n_rows; ++r) {
        for (long i = rows[r].begin; i < rows[r].end; i += kMdLanes) {
            Four dx, dy, dz;
            std::memcpy(&dx, x + i, sizeof dx);
            std::memcpy(&dy, y + i, sizeof dy);
            std::memcpy(&dz, z + i, sizeof dz);
            dx = own[0] - dx;
            dy = own[1] - dy;
            dz = own[2] - dz;
            const Four squared = dx * dx + dy * dy + dz * dz;
            const Mask near =
                (squared < kListCutoff * kListCutoff) & (squared > 0) & (lane < static_cast<double>(rows[r].end - i));
            for (long l = 0; l < kMdLanes; ++l) {
                into[count] = places[i + l];  // stays when that is near, when near is -1
                count -= near[l];
            }
        }
    }
    return count;
}

// The rest of `pull`; for few steps, so plain.
inline void md_pairs(const double* positions, const double* own, const MdList& list, MdPull* pull) {
    pull->potential = pull->virial = pull->pairs = 0;
    for (const int32_t* at = list.begin; at < list.begin + list.count; ++at) {
        const double* const other = positions + *at;
        const double dx = own[0] - other[0], dy = own[1] - other[1], dz = own[2] - other[2];
        const double squared = dx * dx + dy * dy + dz * dz;
        if (!(squared < kCutoff * kCutoff))
            continue;
        const double sixth = 1 / (squared * squared * squared);
        pull->potential += 4 * sixth * (sixth - 1);
        pull->virial += 48 * sixth * (sixth - 0.5);
        pull->pairs += 1;
    }
}

}  // namespace shmem_mt
