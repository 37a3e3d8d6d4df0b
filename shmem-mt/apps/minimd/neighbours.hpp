// The lists of neighbours: for each own atom all atoms and ghosts within the reach of lists, in an order that no number
// of PEs or threads changes (cells.hpp). Every pair is in the lists of both of its atoms.
#pragma once

#include <vector>

#include "apps/common/untouched.hpp"
#include "apps/minimd/atoms.hpp"
#include "apps/minimd/cells.hpp"
#include "apps/minimd/force.hpp"

namespace shmem_mt {

class MdNeighbours {
  public:
    MdNeighbours(ThreadTeam& team, const MdLayout& layout, MdAtoms& atoms, const MdCellGrid& grid)
        : team_(team),
          atoms_(atoms),
          grid_(grid),
          sorted_(team, grid, layout.nowhere()),
          nowhere_(static_cast<int32_t>(3 * layout.nowhere())),
          x_(static_cast<size_t>(layout.nowhere() + kMdLanes)),
          y_(x_.size()),
          z_(x_.size()),
          places_(x_.size()),
          lists_(static_cast<size_t>(layout.own_capacity())),
          pages_(static_cast<size_t>(team.size())) {}

    // Takes those of `arrived` for own atoms, by cell, so that neighbours lie close together in memory. All threads.
    void take(int thread, long step, std::vector<Atom>& arrived, long count) {
        const Range mine = Range{0, count}.share(thread, team_.size());
        for (long i = mine.begin; i < mine.end; ++i)
            atoms_.cell(i) = grid_.cell(arrived[static_cast<size_t>(i)].at, {});
        sorted_.sort(
            thread,
            [&](auto&& f) {
                for (long i = mine.begin; i < mine.end; ++i) f(i);
            },
            [&](long i) { return static_cast<size_t>(atoms_.cell(i)); },
            [&](long i) { return arrived[static_cast<size_t>(i)].id; });
        for (long i = mine.begin; i < mine.end; ++i) atoms_.set(step, i, arrived[static_cast<size_t>(sorted_.at(i))]);
        if (thread == 0)
            atoms_.set_own(count);
        team_.barrier();
        for (long i = mine.begin; i < mine.end; ++i)
            atoms_.cell(i) = grid_.cell(MdAtoms::vector_at(atoms_.positions(step), i), {});
    }

    // Makes the lists. All threads, behind a barrier; ends with one.
    void build(int thread, long step) {
        sorted_.sort(
            thread, [&](auto&& f) { atoms_.for_all(thread, team_.size(), f); },
            [&](long i) { return static_cast<size_t>(atoms_.cell(i)); }, [&](long i) { return atoms_.id(i); });
        const double* const positions = atoms_.positions(step);
        const Range places = Range{0, sorted_.size()}.share(thread, team_.size());
        for (long place = places.begin; place < places.end; ++place) {
            const Vector at = MdAtoms::vector_at(positions, sorted_.at(place));
            x_[static_cast<size_t>(place)] = at[0];
            y_[static_cast<size_t>(place)] = at[1];
            z_[static_cast<size_t>(place)] = at[2];
            places_[static_cast<size_t>(place)] = 3 * sorted_.at(place);
        }
        team_.barrier();
        list_share(positions, atoms_.own().share(thread, team_.size()), pages_[static_cast<size_t>(thread)]);
        team_.barrier();
    }

    const MdList& of(long index) const { return lists_[static_cast<size_t>(index)]; }

  private:
    // Aligned, so that threads do not share the ends of their vectors.
    struct alignas(64) Page {
        std::vector<int32_t> places;
        std::vector<long> begins;
        MdRow rows[MdCellGrid::kRows];
    };

    // Lists of one thread lie one behind the other.
    void list_share(const double* positions, const Range& own, Page& page) {
        page.begins.clear();
        long used = 0;
        for (long i = own.begin; i < own.end; ++i) {
            page.begins.push_back(used);
            const long atoms = find_rows(atoms_.cell(i), page.rows);
            if (static_cast<long>(page.places.size()) < used + atoms + 2 * kMdLanes)
                page.places.resize(static_cast<size_t>(2 * (used + atoms) + kFirstPage));
            used += md_near(x_.data(), y_.data(), z_.data(), places_.data(), page.rows, MdCellGrid::kRows,
                            positions + 3 * i, page.places.data() + used);
            while (used % kMdLanes != 0) page.places[static_cast<size_t>(used++)] = nowhere_;
        }
        page.begins.push_back(used);
        for (long i = own.begin; i < own.end; ++i) {
            const long* const begin = &page.begins[static_cast<size_t>(i - own.begin)];
            lists_[static_cast<size_t>(i)] = {page.places.data() + begin[0], static_cast<int32_t>(begin[1] - begin[0])};
        }
    }

    // Where neighbours of the atoms of a cell may be; how many atoms there are.
    long find_rows(int32_t cell, MdRow* rows) const {
        long atoms = 0;
        grid_.for_rows_around(cell, [&](size_t first, size_t last) {
            *rows = {sorted_.start(first), sorted_.start(last + 1)};
            atoms += rows->end - rows->begin;
            ++rows;
        });
        return atoms;
    }

    static constexpr long kFirstPage = 1 << 14;

    ThreadTeam& team_;
    MdAtoms& atoms_;
    const MdCellGrid& grid_;
    MdCellSort sorted_;
    const int32_t nowhere_;
    Untouched<double> x_, y_, z_;  // in the order of sorted_
    Untouched<int32_t> places_;    // where their coordinates are among positions
    Untouched<MdList> lists_;      // by own atom
    std::vector<Page> pages_;      // one a thread
};

}  // namespace shmem_mt
