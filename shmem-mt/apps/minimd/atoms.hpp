// The atoms that a PE sees, its own and ghosts of others, as they lie in memory. There are two symmetric sets of
// positions: a step reads one and writes the other, where partners put their ghosts meanwhile. Allocates once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "apps/common/range.hpp"
#include "apps/common/untouched.hpp"
#include "apps/minimd/layout.hpp"
#include "programs/common/job.hpp"

namespace shmem_mt {

class MdAtoms {
  public:
    // Collective. The threads write to shares of the arrays first: about those of the atoms that are theirs.
    MdAtoms(Job& job, const MdLayout& layout)
        : layout_(layout),
          positions_{symmetric_set(job, layout), symmetric_set(job, layout)},
          velocities_(static_cast<size_t>(3 * layout.own_capacity())),
          ids_(static_cast<size_t>(layout.nowhere())),
          cells_(ids_.size()),
          ghosts_(layout.partners().size()) {
        job.team().run([&](int thread) {
            const Range own = Range{0, 3 * layout.own_capacity()}.share(thread, job.threads());
            std::fill(velocities_.begin() + own.begin, velocities_.begin() + own.end, 0.0);
        });
    }

    // Three coordinates an atom, in the set that belongs to a step.
    double* positions(long step) { return positions_[step % 2]; }
    double* velocities() { return velocities_.data(); }

    // Of own atoms and ghosts, as they were when the lists were built: numbers among all atoms; cells (MdCellGrid).
    int32_t& id(long index) { return ids_[static_cast<size_t>(index)]; }
    int32_t& cell(long index) { return cells_[static_cast<size_t>(index)]; }

    Range own() const { return {0, own_}; }
    Range ghosts(size_t partner) const {
        const long begin = layout_.partners()[partner].begin;
        return {begin, begin + ghosts_[partner]};
    }
    void set_own(long count) { own_ = count; }
    void set_ghosts(size_t partner, long count) { ghosts_[partner] = count; }

    Atom get(long step, long index) {
        Atom atom{};
        atom.at = vector_at(positions(step), index);
        atom.velocity = vector_at(velocities(), index);
        atom.id = id(index);
        return atom;
    }

    void set(long step, long index, const Atom& atom) {
        set_at(step, index, atom.at);
        for (size_t axis = 0; axis < 3; ++axis)
            velocities_[static_cast<size_t>(3 * index) + axis] = atom.velocity[axis];
        id(index) = static_cast<int32_t>(atom.id);
    }

    void set_at(long step, long index, const Vector& at) {
        for (size_t axis = 0; axis < 3; ++axis) positions(step)[static_cast<size_t>(3 * index) + axis] = at[axis];
    }

    static Vector vector_at(const double* all, long index) {
        return {all[3 * index], all[3 * index + 1], all[3 * index + 2]};
    }

    // f(index) for the thread's share of own atoms and of the ghosts of each partner.
    template <class F>
    void for_all(int thread, int threads, F&& f) const {
        const auto each = [&](const Range& all) {
            const Range mine = all.share(thread, threads);
            for (long i = mine.begin; i < mine.end; ++i) f(i);
        };
        each(own());
        for (size_t partner = 0; partner < ghosts_.size(); ++partner) each(ghosts(partner));
    }

  private:
    static constexpr double kFarAway = 1e6;  // of the place where no atom is

    static double* symmetric_set(Job& job, const MdLayout& layout) {
        const size_t length = static_cast<size_t>(3 * layout.nowhere());
        double* const set = static_cast<double*>(symmetric_alloc_untouched(sizeof(double) * (length + 3)));
        job.team().run([&](int thread) {
            const auto touch = [&](const Range& all) {
                const Range mine = all.share(thread, job.threads());
                std::fill(set + mine.begin, set + mine.end, 0.0);
            };
            touch({0, 3 * layout.own_capacity()});
            touch({3 * layout.own_capacity(), static_cast<long>(length)});
        });
        std::fill(set + length, set + length + 3, kFarAway);
        shmem_barrier_all();
        return set;
    }

    const MdLayout& layout_;
    double* const positions_[2];
    Untouched<double> velocities_;  // of own atoms
    std::vector<int32_t> ids_, cells_;
    std::vector<long> ghosts_;  // how many, by partner
    long own_ = 0;
};

}  // namespace shmem_mt
