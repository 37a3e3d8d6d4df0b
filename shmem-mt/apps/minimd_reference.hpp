// The same dynamics by one thread on all atoms, written plainly and apart from the parallel form: no ghosts, each pair
// once, and the image of a neighbour found again for each pair. It rounds in other places, so its atoms are not the
// same to the bit.
#pragma once

#include <vector>

#include "minimd_model.hpp"

namespace shmem_mt {

class MdReference {
  public:
    explicit MdReference(const MdModel& model)
        : model_(model),
          edge_(model.edge()),
          cells_(std::max(1L, static_cast<long>(edge_ / kListCutoff))),
          cells_away_(static_cast<long>(std::ceil(kListCutoff * static_cast<double>(cells_) / edge_))) {
        for (long id = 0; id < model.atoms(); ++id) {
            at_.push_back(model.lattice_site(id));
            velocity_.push_back(model.first_velocity(id));
        }
        force_.resize(at_.size());
    }

    // What there is at the beginning and after each kThermoSteps.
    std::vector<MdThermo> run(int steps) {
        find_pairs();
        std::vector<MdThermo> history = {pull()};
        for (int step = 1; step <= steps; ++step) {
            kick();
            for (size_t i = 0; i < at_.size(); ++i) {
                for (size_t axis = 0; axis < 3; ++axis) at_[i][axis] += kTimeStep * velocity_[i][axis];
            }
            if (step % kListSteps == 0)
                find_pairs();
            pull();
            kick();
            if (step % kThermoSteps == 0)
                history.push_back(thermo());
        }
        return history;
    }

  private:
    struct Pair {
        int32_t first, second;
        int8_t edges[4];  // from the second atom to its image that is meant
    };

    void kick() {
        for (size_t i = 0; i < at_.size(); ++i) {
            for (size_t axis = 0; axis < 3; ++axis) velocity_[i][axis] += kTimeStep / 2 * force_[i][axis];
        }
    }

    Vector distance(const Pair& pair) const {
        const Vector &a = at_[static_cast<size_t>(pair.first)], &b = at_[static_cast<size_t>(pair.second)];
        Vector apart{};
        for (size_t axis = 0; axis < 3; ++axis) apart[axis] = a[axis] - b[axis] - pair.edges[axis] * edge_;
        return apart;
    }

    static double squared(const Vector& v) { return v[0] * v[0] + v[1] * v[1] + v[2] * v[2]; }

    MdThermo pull() {
        for (Vector& force : force_) force = {};
        sums_ = {};
        for (const Pair& pair : pairs_) {
            const Vector apart = distance(pair);
            const double r2 = squared(apart);
            if (r2 >= kCutoff * kCutoff)
                continue;
            const double r6 = r2 * r2 * r2;
            const double strength = (48 / r6 - 24) / (r6 * r2);
            for (size_t axis = 0; axis < 3; ++axis) {
                force_[static_cast<size_t>(pair.first)][axis] += strength * apart[axis];
                force_[static_cast<size_t>(pair.second)][axis] -= strength * apart[axis];
            }
            sums_.potential += (4 / r6 - 4) / r6;
            sums_.virial += strength * r2;
            sums_.pairs += 1;
        }
        return thermo();
    }

    MdThermo thermo() {
        sums_.squares = 0;
        for (const Vector& velocity : velocity_) sums_.squares += squared(velocity);
        return model_.thermo(sums_);
    }

    long cell_of(double x) const {
        return std::min(cells_ - 1, static_cast<long>(x / edge_ * static_cast<double>(cells_)));
    }

    void find_pairs() {
        std::vector<std::vector<int32_t>> cells(static_cast<size_t>(cells_ * cells_ * cells_));
        for (size_t i = 0; i < at_.size(); ++i) {
            for (double& x : at_[i]) x -= edge_ * std::floor(x / edge_);
            const long cell = (cell_of(at_[i][2]) * cells_ + cell_of(at_[i][1])) * cells_ + cell_of(at_[i][0]);
            cells[static_cast<size_t>(cell)].push_back(static_cast<int32_t>(i));
        }
        pairs_.clear();
        for (long z = 0; z < cells_; ++z) {
            for (long y = 0; y < cells_; ++y) {
                for (long x = 0; x < cells_; ++x) find_pairs_of(cells, {x, y, z});
            }
        }
    }

    using Cell = std::array<long, 3>;

    void find_pairs_of(const std::vector<std::vector<int32_t>>& cells, const Cell& cell) {
        const auto number = [&](const Cell& c) { return static_cast<size_t>((c[2] * cells_ + c[1]) * cells_ + c[0]); };
        for (long z = -cells_away_; z <= cells_away_; ++z) {
            for (long y = -cells_away_; y <= cells_away_; ++y) {
                for (long x = -cells_away_; x <= cells_away_; ++x) {
                    Cell other = {cell[0] + x, cell[1] + y, cell[2] + z};
                    Pair pair{};
                    for (size_t axis = 0; axis < 3; ++axis) {
                        const long edges = (other[axis] + cells_away_ * cells_) / cells_ - cells_away_;
                        other[axis] -= edges * cells_;
                        pair.edges[axis] = static_cast<int8_t>(edges);
                    }
                    for (const int32_t first : cells[number(cell)]) {
                        for (const int32_t second : cells[number(other)]) {
                            pair.first = first;
                            pair.second = second;
                            if (counts(pair) && squared(distance(pair)) < kListCutoff * kListCutoff)
                                pairs_.push_back(pair);
                        }
                    }
                }
            }
        }
    }

    // Of the two ways to look at a pair one.
    static bool counts(const Pair& pair) {
        const int8_t* const e = pair.edges;
        const int side = e[0] != 0 ? e[0] : e[1] != 0 ? e[1] : e[2];
        return pair.first < pair.second || (pair.first == pair.second && side > 0);
    }

    const MdModel& model_;
    const double edge_;
    const long cells_, cells_away_;
    std::vector<Vector> at_, velocity_, force_;
    std::vector<Pair> pairs_;
    MdSums sums_;
};

}  // namespace shmem_mt
