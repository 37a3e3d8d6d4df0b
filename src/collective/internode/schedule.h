// The trees along which collectives between nodes send: functions of numbers, without a network. Any thread. The
// collectives carry them out; tests carry them out for a million nodes.
#pragma once

#include "base/invariant.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace heddle::collective::internode {

// A binomial tree of n nodes whose root is node 0: one node's parent (-1: none) and its children, the farthest first.
// No node has more than log2(n) children, nor is farther from the root.
struct BinomialTree {
    int parent = -1;
    std::vector<int> children;
};

inline BinomialTree binomial_tree(int n_nodes, int node) {
    BinomialTree tree;
    if (node != 0)
        tree.parent = node & (node - 1);
    int reach = 1;  // the lowest bit of node; beyond all nodes for 0
    while (reach < n_nodes && (node & reach) == 0) reach *= 2;
    for (reach /= 2; reach > 0; reach /= 2)
        if (node + reach < n_nodes)
            tree.children.push_back(node + reach);
    return tree;
}

// A value to or from another node: that of a block of this node, or one to combine with it from the right.
struct Transfer {
    int node;
    size_t block;
};

// The transfers of one level of a ReductionTree: first all sends, then all receipts, then the pairs. Transfers of one
// node are neighbours, in the order of their units, which both nodes know: they share messages.
struct Level {
    std::vector<Transfer> sends, receipts;
    std::vector<std::pair<size_t, size_t>> pairs;  // blocks of this node, left and right
};

// One node's part in a reduction as a tree (collective/reduction_order.h) over units, which are members or nodes. A
// block's value comes together on the node of its first unit. At each level a node sends the values of right halves to
// the nodes of their left halves. The root is unit 0's node. NodeOf: node_of(unit) of all units.
//
// A scan goes back down the levels. A block's prefix is the sum of all units before it. The right half's prefix is the
// left half's, combined with the left half's value: a receipt's node sends it back, and a pair's node has it.
template <class NodeOf>
class ReductionTree {
  public:
    // The largest blocks of which all units are on this node, in the order of their units. Each has a value.
    struct Block {
        int first, count;
    };

    // mine: this node's units, ascending.
    ReductionTree(int n_units, int node, const int* mine, int count, NodeOf node_of)
        : n_units_(n_units), node_(node), node_of_(node_of) {
        for (int at = 0; at < count; at += blocks_.back().count) {
            blocks_.push_back(block_at(mine + at, count - at));
            live_.push_back(blocks_.size() - 1);
        }
    }

    const std::vector<Block>& blocks() const { return blocks_; }
    int levels() const {
        int levels = 0;
        while (levels < 31 && 1 << levels < n_units_) ++levels;
        return levels;
    }

    // The next level, from 0 on. Afterwards the sent and the right ones of pairs have no value any more.
    Level next() {
        const int level = level_++, half = 1 << level;
        Level now;
        size_t kept = 0;
        for (const size_t index : live_) {
            const Block& block = blocks_[index];
            const bool is_right = block.first & half;
            if (is_right && node_of_(block.first - half) != node_) {
                now.sends.push_back({node_of_(block.first - half), index});
                continue;
            }
            if (is_right) {
                now.pairs.push_back({index_of(block.first - half, kept), index});
                continue;
            }
            if (block.first < n_units_ - half && node_of_(block.first + half) != node_)
                now.receipts.push_back({node_of_(block.first + half), index});
            live_[kept++] = index;
        }
        live_.resize(kept);
        const auto by_node = [](const Transfer& a, const Transfer& b) {
            return std::pair(a.node, a.block) < std::pair(b.node, b.block);
        };
        std::sort(now.sends.begin(), now.sends.end(), by_node);
        std::sort(now.receipts.begin(), now.receipts.end(), by_node);
        return now;
    }

  private:
    Block block_at(const int* mine, int count) const {
        const int first = mine[0];
        const auto units = [&](int level) { return std::min(1 << level, n_units_ - first); };
        const auto is_whole = [&](int level) {
            const int last = units(level) - 1;
            return last < count && mine[last] == first + last;
        };
        int level = 0;
        while (level < levels() && first % (2 << level) == 0 && is_whole(level + 1)) ++level;
        return {first, units(level)};
    }
    // Of the first `kept` live blocks, the one that begins at a unit.
    size_t index_of(int first, size_t kept) const {
        const auto end = live_.begin() + static_cast<std::ptrdiff_t>(kept);
        const auto found = std::lower_bound(live_.begin(), end, first,
                                            [&](size_t index, int unit) { return blocks_[index].first < unit; });
        HEDDLE_INVARIANT(found != end && blocks_[*found].first == first);
        return *found;
    }

    const int n_units_, node_;
    const NodeOf node_of_;
    std::vector<Block> blocks_;
    std::vector<size_t> live_;  // blocks that have a value, in the order of their units
    int level_ = 0;
};

}  // namespace heddle::collective::internode
