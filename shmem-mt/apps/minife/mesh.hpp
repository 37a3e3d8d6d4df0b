// The mesh of minife: a cube of N x N x N hexahedra, of which each PE of a three-dimensional grid has a box. A node
// that several PEs touch belongs to the last of them. Nodes are numbered PE by PE (krylov/system.hpp). Only this file
// knows that the mesh is a cube: everything else goes by lists of elements, nodes and numbers.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "apps/common/range.hpp"
#include "apps/common/untouched.hpp"
#include "programs/common/grid.hpp"
#include "programs/common/thread_team.hpp"

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

// What one PE has: its elements, the nodes that these touch, its own or not, and its own nodes. Elements come in blocks
// of neighbours, whose rows of the matrix stay in a cache, and blocks colour by colour: two of one colour have no node
// in common. The cut does not depend on the number of threads.
class FeMesh {
  public:
    // Of each colour, or more. So the one of 62 threads with most to do has a twelfth more than their mean, or less.
    static constexpr long kBlocks = 768;
    static constexpr long kLargestBlock = 8;  // 9^3 rows of the matrix are 240 KB

    using Element = std::array<int32_t, 8>;  // places in the lists of touched nodes; the corners, x fastest

    FeMesh(ThreadTeam& team, const FeCube& cube, int pe)
        : cube_(cube), box_(cube.elements(pe)), own_box_(cube.nodes(pe)) {
        if (volume(box_) > 0) {
            for (size_t axis = 0; axis < 3; ++axis) touched_box_[axis] = {box_[axis].begin, box_[axis].end + 1};
        }
        for_box(touched_box_, [&](long i, long j, long k) { numbers_.push_back(cube.number(i, j, k)); });
        elements_.resize(static_cast<size_t>(volume(box_)));
        points_.resize(numbers_.size());
        own_points_.resize(static_cast<size_t>(volume(own_box_)));
        find_blocks();
        team.run([&](int thread) { generate(thread, team.size()); });
    }

    // Lists and coordinates, by all threads.
    void generate(int thread, int threads) {
        const Range mine = Range{0, static_cast<long>(elements_.size())}.share(thread, threads);
        for (long i = mine.begin; i < mine.end; ++i)
            elements_[static_cast<size_t>(i)] = element(order_[static_cast<size_t>(i)]);
        place_points(touched_box_, thread, threads, &points_);
        place_points(own_box_, thread, threads, &own_points_);
    }

    const Untouched<Element>& elements() const { return elements_; }
    const std::vector<Range>& blocks() const { return blocks_; }          // of elements
    const std::vector<Range>& colors() const { return colors_; }          // of blocks
    const std::vector<int32_t>& numbers() const { return numbers_; }      // of touched nodes
    const Untouched<FePoint>& points() const { return points_; }          // touched nodes
    const Untouched<FePoint>& own_points() const { return own_points_; }  // by number

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

    // Blocks whose places are odd or even alike along each axis have a colour: another block lies between any two.
    void find_blocks() {
        std::array<long, 3> counts{};
        for (size_t axis = 0; axis < 3; ++axis)
            counts[axis] = (box_[axis].length() + edge_of_blocks() - 1) / edge_of_blocks();
        for (long color = 0; color < 8; ++color) {
            const long first = static_cast<long>(blocks_.size());
            for (long z = color >> 2; z < counts[2]; z += 2) {
                for (long y = color >> 1 & 1; y < counts[1]; y += 2) {
                    for (long x = color & 1; x < counts[0]; x += 2) add_block({x, y, z});
                }
            }
            colors_.push_back({first, static_cast<long>(blocks_.size())});
        }
    }

    void add_block(const std::array<long, 3>& place) {
        const long first = static_cast<long>(order_.size());
        FeBox block{};
        for (size_t axis = 0; axis < 3; ++axis) {
            const long begin = place[axis] * edge_of_blocks();
            block[axis] = {begin, std::min(begin + edge_of_blocks(), box_[axis].length())};
        }
        const long nx = box_[0].length(), ny = box_[1].length();
        for_box(block, [&](long i, long j, long k) { order_.push_back((k * ny + j) * nx + i); });
        blocks_.push_back({first, static_cast<long>(order_.size())});
    }

    // As large as leaves kBlocks of each colour, for the threads to share.
    long edge_of_blocks() const {
        for (long edge = kLargestBlock; edge > 1; edge /= 2) {
            if (volume(box_) >= 8 * kBlocks * edge * edge * edge)
                return edge;
        }
        return 1;
    }

    void place_points(const FeBox& box, int thread, int threads, Untouched<FePoint>* points) const {
        const Range layers = box[2].share(thread, threads);
        long place = (layers.begin - box[2].begin) * box[1].length() * box[0].length();
        for_box({box[0], box[1], layers},
                [&](long i, long j, long k) { (*points)[static_cast<size_t>(place++)] = cube_.point(i, j, k); });
    }

    const FeCube& cube_;
    const FeBox box_, own_box_;
    FeBox touched_box_{};
    std::vector<long> order_;  // of the elements: by block
    std::vector<Range> blocks_, colors_;
    Untouched<Element> elements_;
    std::vector<int32_t> numbers_;
    Untouched<FePoint> points_, own_points_;
};

}  // namespace shmem_mt
