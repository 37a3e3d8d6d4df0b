// MiniMD's dynamics by one thread on all atoms, written plainly and apart from the parallel form: no ghosts, no motion
// of atoms from place to place, the image of a neighbour found again for each pair, one operation at a time. Neighbours
// are added up in the parallel form's order, so positions and velocities must have its bits.
#pragma once

#include <vector>

#include "apps/minimd/model.hpp"

namespace shmem_mt {

class MdReference {
  public:
    explicit MdReference(const MdModel& model)
        : model_(model),
          edge_(model.edge()),
          cells_(std::max(1L, static_cast<long>(edge_ * kCellsOfReach / kListCutoff))) {
        for (long id = 0; id < model.atoms(); ++id)
            atoms_.push_back({model.lattice_site(id), model.first_velocity(id), id});
        forces_.resize(atoms_.size());
        neighbours_.resize(atoms_.size());
    }

    // Bytes, about.
    static double memory_need(long cells) { return 1300.0 * static_cast<double>(MdModel::atoms_of(cells)); }

    MdHistory run(int steps) {
        MdHistory history;
        find_neighbours();
        pull();
        history.thermo.push_back(thermo());
        for (int step = 1; step <= steps; ++step) {
            kick();
            for (Atom& atom : atoms_) {
                for (size_t axis = 0; axis < 3; ++axis) atom.at[axis] += kTimeStep * atom.velocity[axis];
            }
            if (step % kListSteps == 0)
                find_neighbours();
            pull();
            kick();
            if (step % kThermoSteps == 0)
                history.thermo.push_back(thermo());
        }
        for (const Atom& atom : atoms_) history.state += state_of(atom);
        history.state &= kStateMask;
        return history;
    }

  private:
    static constexpr long kCellsOfReach = 2;  // the order of neighbours depends on it

    struct Neighbour {
        int32_t id;
        int8_t edges[4];  // from it to its image that is meant
    };

    void kick() {
        for (size_t i = 0; i < atoms_.size(); ++i) {
            for (size_t axis = 0; axis < 3; ++axis) atoms_[i].velocity[axis] += kTimeStep / 2 * forces_[i][axis];
        }
    }

    Vector distance(const Atom& atom, const Neighbour& neighbour) const {
        const Vector& other = atoms_[static_cast<size_t>(neighbour.id)].at;
        Vector apart{};
        for (size_t axis = 0; axis < 3; ++axis)
            apart[axis] = atom.at[axis] - (other[axis] + neighbour.edges[axis] * edge_);
        return apart;
    }

    static double squared(const Vector& v) { return v[0] * v[0] + v[1] * v[1] + v[2] * v[2]; }

    // Neighbours add to four sums in turns.
    void pull() {
        sums_ = {};
        for (size_t i = 0; i < atoms_.size(); ++i) {
            Vector parts[4]{};
            MdSums own;  // added up apart, as sums of millions of terms lose digits
            for (size_t n = 0; n < neighbours_[i].size(); ++n) {
                const Vector apart = distance(atoms_[i], neighbours_[i][n]);
                const double r2 = squared(apart);
                if (r2 >= kCutoff * kCutoff)
                    continue;
                const double inverse = 1 / r2, sixth = inverse * inverse * inverse;
                const double strength = sixth * (sixth - 0.5) * inverse;
                for (size_t axis = 0; axis < 3; ++axis) parts[n % 4][axis] += apart[axis] * strength;
                own.potential += 2 * sixth * (sixth - 1);
                own.virial += 24 * strength * r2;
                own.pairs += 0.5;
            }
            sums_.potential += own.potential;
            sums_.virial += own.virial;
            sums_.pairs += own.pairs;
            for (size_t axis = 0; axis < 3; ++axis)
                forces_[i][axis] = 48 * ((parts[0][axis] + parts[1][axis]) + (parts[2][axis] + parts[3][axis]));
        }
    }

    MdThermo thermo() {
        sums_.squares = 0;
        for (const Atom& atom : atoms_) sums_.squares += squared(atom.velocity);
        return model_.thermo(sums_);
    }

    using Cell = std::array<long, 3>;

    Cell cell_of(const Vector& at) const {
        Cell cell{};
        for (size_t axis = 0; axis < 3; ++axis)
            cell[axis] = std::min(cells_ - 1, static_cast<long>(at[axis] * static_cast<double>(cells_) / edge_));
        return cell;
    }

    size_t number_of(const Cell& cell) const {
        return static_cast<size_t>((cell[2] * cells_ + cell[1]) * cells_ + cell[0]);
    }

    void find_neighbours() {
        std::vector<std::vector<int32_t>> cells(static_cast<size_t>(cells_ * cells_ * cells_));
        for (Atom& atom : atoms_) {
            for (double& x : atom.at) {
                if (x < 0)
                    x += edge_;
                else if (x >= edge_)
                    x -= edge_;
                if (x == edge_)
                    x = 0;
            }
            cells[number_of(cell_of(atom.at))].push_back(static_cast<int32_t>(atom.id));
        }
        for (size_t i = 0; i < atoms_.size(); ++i) {
            neighbours_[i].clear();
            const Cell cell = cell_of(atoms_[i].at);
            for (long z = -kCellsOfReach; z <= kCellsOfReach; ++z) {
                for (long y = -kCellsOfReach; y <= kCellsOfReach; ++y) {
                    for (long x = -kCellsOfReach; x <= kCellsOfReach; ++x)
                        find_in(cells, i, {cell[0] + x, cell[1] + y, cell[2] + z});
                }
            }
        }
    }

    // In a cell that may be one of an image of the box.
    void find_in(const std::vector<std::vector<int32_t>>& cells, size_t i, Cell cell) {
        Neighbour neighbour{};
        for (size_t axis = 0; axis < 3; ++axis) {
            const long edges = (cell[axis] + kCellsOfReach * cells_) / cells_ - kCellsOfReach;
            neighbour.edges[axis] = static_cast<int8_t>(edges);
            cell[axis] -= edges * cells_;
        }
        for (const int32_t id : cells[number_of(cell)]) {
            neighbour.id = id;
            const double r2 = squared(distance(atoms_[i], neighbour));
            if (r2 > 0 && r2 < kListCutoff * kListCutoff)
                neighbours_[i].push_back(neighbour);
        }
    }

    const MdModel& model_;
    const double edge_;
    const long cells_;  // along the edge
    std::vector<Atom> atoms_;
    std::vector<Vector> forces_;
    std::vector<std::vector<Neighbour>> neighbours_;
    MdSums sums_;
};

}  // namespace shmem_mt
