// The mesh of minife: a cube of N x N x N hexahedra, of which each PE of a three-dimensional grid has a box. A node
// that several PEs touch belongs to the last of them. Nodes are numbered PE by PE (krylov/system.hpp). Only this file
// knows that the mesh is a cube: everything else goes by lists of elements, nodes and numbers.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "apps/common/range.hpp"
#include "programs/common/grid.hpp"

namespace shmem_mt {

using FePoint = std::array<double, 3>;
using FeBox = std::array<Range, 3>;

// f(i, j, k) for all of a box, i fastest.
template <class F>
void for_box(const FeBox& box, F&& f) {
    for (long k = box[2].begin; k < box[2].end; ++k) {
        for (long j = box[1].begin; j < box[1].end; ++j) {
            for (long i = box[0].begin; i < box[0].end; ++i) f(i, j, k);
        }
    }
}

inline long volume(const FeBox& box) {
    return box[0].length() * box[1].length() * box[2].length();
}

// Which PE has which elements and nodes of the cube.
class FeCube {
  public:
    FeCube(long edge, int pes) : edge_(edge), grid_(grid_of(pes)), firsts_{0} {
        for (size_t axis = 0; axis < 3; ++axis) {
            for (int place = 0; place < grid_[axis]; ++place)
                owners_[axis].resize(static_cast<size_t>(nodes_at(axis, place).end), place);
        }
        for (int pe = 0; pe < pes; ++pe) firsts_.push_back(firsts_.back() + volume(nodes(pe)));
    }

    long edge() const { return edge_; }
    const std::vector<long>& firsts() const { return firsts_; }  // number of the first node of each PE, and the end

    FeBox elements(int pe) const {
        const Place place = place_of(grid_, pe);
        return {elements_at(0, place[0]), elements_at(1, place[1]), elements_at(2, place[2])};
    }
    FeBox nodes(int pe) const {
        const Place place = place_of(grid_, pe);
        return {nodes_at(0, place[0]), nodes_at(1, place[1]), nodes_at(2, place[2])};
    }

    int32_t number(long i, long j, long k) const {
        const int x = owner(0, i), y = owner(1, j), z = owner(2, k);
        const int pe = (z * grid_[1] + y) * grid_[0] + x;
        const FeBox box = nodes(pe);
        const long in_box = ((k - box[2].begin) * box[1].length() + j - box[1].begin) * box[0].length();
        return static_cast<int32_t>(firsts_[static_cast<size_t>(pe)] + in_box + i - box[0].begin);
    }

    FePoint point(long i, long j, long k) const {
        const double n = static_cast<double>(edge_);
        return {static_cast<double>(i) / n, static_cast<double>(j) / n, static_cast<double>(k) / n};
    }

  private:
    Range elements_at(size_t axis, int place) const { return Range{0, edge_}.share(place, grid_[axis]); }
    Range nodes_at(size_t axis, int place) const {
        const Range elements = elements_at(axis, place);
        return {elements.begin, elements.end + (place + 1 == grid_[axis])};
    }
    int owner(size_t axis, long node) const { return owners_[axis][static_cast<size_t>(node)]; }

    const long edge_;
    const Place grid_;
    std::array<std::vector<int>, 3> owners_;  // by axis and node: the place of its PE
    std::vector<long> firsts_;
};

// What one PE has: its elements, the nodes that these touch, its own or not, and its own nodes. Elements come colour by
// colour: two of one colour have no node in common.
class FeMesh {
  public:
    using Element = std::array<int32_t, 8>;  // places in the lists of touched nodes; the corners, x fastest

    FeMesh(const FeCube& cube, int pe) : cube_(cube), box_(cube.elements(pe)), own_box_(cube.nodes(pe)) {
        if (volume(box_) > 0) {
            for (size_t axis = 0; axis < 3; ++axis) touched_box_[axis] = {box_[axis].begin, box_[axis].end + 1};
        }
        for_box(touched_box_, [&](long i, long j, long k) { numbers_.push_back(cube.number(i, j, k)); });
        elements_.resize(static_cast<size_t>(volume(box_)));
        points_.resize(numbers_.size());
        own_points_.resize(static_cast<size_t>(volume(own_box_)));
        find_colors();
        generate(0, 1);
    }

    // Lists and coordinates, by all threads.
    void generate(int thread, int threads) {
        const Range mine = Range{0, static_cast<long>(elements_.size())}.share(thread, threads);
        for (long i = mine.begin; i < mine.end; ++i)
            elements_[static_cast<size_t>(i)] = element(order_[static_cast<size_t>(i)]);
        place_points(touched_box_, thread, threads, &points_);
        place_points(own_box_, thread, threads, &own_points_);
    }

    const std::vector<Element>& elements() const { return elements_; }
    const std::vector<Range>& colors() const { return colors_; }
    const std::vector<int32_t>& numbers() const { return numbers_; }        // of touched nodes
    const std::vector<FePoint>& points() const { return points_; }          // touched nodes
    const std::vector<FePoint>& own_points() const { return own_points_; }  // by number

  private:
    Element element(long in_box) const {
        const long nx = box_[0].length(), ny = box_[1].length();
        const long i = in_box % nx, j = in_box / nx % ny, k = in_box / nx / ny;
        Element nodes{};
        for (long corner = 0; corner < 8; ++corner) {
            const long x = i + (corner & 1), y = j + (corner >> 1 & 1), z = k + (corner >> 2);
            nodes[static_cast<size_t>(corner)] = static_cast<int32_t>((z * (ny + 1) + y) * (nx + 1) + x);
        }
        return nodes;
    }

    // Each element takes the first colour that none of its nodes has seen.
    void find_colors() {
        std::vector<uint32_t> seen(numbers_.size());
        std::vector<std::vector<long>> of_color;
        for (long in_box = 0; in_box < volume(box_); ++in_box) {
            const Element nodes = element(in_box);
            uint32_t taken = 0;
            for (const int32_t node : nodes) taken |= seen[static_cast<size_t>(node)];
            size_t color = 0;
            while (taken >> color & 1) ++color;
            for (const int32_t node : nodes) seen[static_cast<size_t>(node)] |= uint32_t{1} << color;
            if (of_color.size() <= color)
                of_color.resize(color + 1);
            of_color[color].push_back(in_box);
        }
        for (const std::vector<long>& some : of_color) {
            const long begin = static_cast<long>(order_.size());
            order_.insert(order_.end(), some.begin(), some.end());
            colors_.push_back({begin, static_cast<long>(order_.size())});
        }
    }

    void place_points(const FeBox& box, int thread, int threads, std::vector<FePoint>* points) const {
        const Range layers = box[2].share(thread, threads);
        long place = (layers.begin - box[2].begin) * box[1].length() * box[0].length();
        for_box({box[0], box[1], layers},
                [&](long i, long j, long k) { (*points)[static_cast<size_t>(place++)] = cube_.point(i, j, k); });
    }

    const FeCube& cube_;
    const FeBox box_, own_box_;
    FeBox touched_box_{};
    std::vector<long> order_;  // of the elements, by colour
    std::vector<Range> colors_;
    std::vector<Element> elements_;
    std::vector<int32_t> numbers_;
    std::vector<FePoint> points_, own_points_;
};

}  // namespace shmem_mt
