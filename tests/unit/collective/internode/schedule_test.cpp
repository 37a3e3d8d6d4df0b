// The trees of collectives between nodes, carried out for all nodes of a job without a network: the result of a
// reduction is the one that its order defines, wherever members are, and messages and rounds are within their formulas
// up to a million nodes. Values are combined by a hash that changes with every change of order. Time is virtual: a
// message takes 1, all else nothing.
#include "collective/internode/schedule.h"

#include <gtest/gtest.h>
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <random>
#include <stdexcept>
#include <unordered_map>
#include <vector>

namespace heddle::collective::internode {
namespace {

using NodeOf = std::function<int(int)>;
using Tree = ReductionTree<NodeOf>;

int log2_up(int n) {
    int log = 0;
    while (1 << log < n) ++log;
    return log;
}

uint64_t leaf(int unit) {
    return 0x9e3779b97f4a7c15 * static_cast<uint64_t>(unit + 1);
}
uint64_t combine(uint64_t left, uint64_t right) {
    const uint64_t x = left * 0xbf58476d1ce4e5b9 + (right ^ right >> 29) * 0x94d049bb133111eb + 1;
    return x ^ x >> 31;
}
// By definition: the largest power of two of units that leaves some is the left half.
uint64_t right_value(int first, int count) {
    if (count == 1)
        return leaf(first);
    int half = 1;
    while (2 * half < count) half *= 2;
    return combine(right_value(first, half), right_value(first + half, count - half));
}

// By definition: the whole blocks before a unit, the largest first, combined one after the other.
class RightPrefixes {
  public:
    explicit RightPrefixes(int n_units) {
        of_levels_.emplace_back();
        for (int unit = 0; unit < n_units; ++unit) of_levels_[0].push_back(leaf(unit));
        while (of_levels_.back().size() > 1) {
            std::vector<uint64_t> level;
            for (size_t i = 0; i + 1 < of_levels_.back().size(); i += 2)
                level.push_back(combine(of_levels_.back()[i], of_levels_.back()[i + 1]));
            of_levels_.push_back(std::move(level));
        }
    }
    // Not for unit 0.
    uint64_t before(int unit) const {
        uint64_t sum = 0;
        int at = 0;
        for (size_t level = of_levels_.size(); level-- > 0;) {
            if (!(unit >> level & 1))
                continue;
            const uint64_t block = of_levels_[level][static_cast<size_t>(at >> level)];
            sum = at == 0 ? block : combine(sum, block);
            at += 1 << level;
        }
        return sum;
    }

  private:
    std::vector<std::vector<uint64_t>> of_levels_;  // by level: the values of the whole blocks
};

struct Cost {
    uint64_t messages = 0;     // all of them
    int most_sent = 0;         // by a node
    int most_received = 0;     // by a node
    int rounds = 0;            // messages one after the other, until every node has the result
    uint64_t most_of_one = 0;  // values in a message
};

// A job whose units 0 to n_units - 1 lie on nodes that are numbered by their first units.
class Job {
  public:
    Job(int n_units, const NodeOf& node_of) : n_units_(n_units), node_of_(node_of) {
        for (int unit = 0; unit < n_units; ++unit) {
            const auto node = static_cast<size_t>(node_of(unit));
            require(node <= mine_.size());
            if (node == mine_.size())
                mine_.emplace_back();
            mine_[node].push_back(unit);
        }
    }

    int n_nodes() const { return static_cast<int>(mine_.size()); }

    // Carries out a reduction, and returns what it costs; the value at the root must be the right one.
    Cost reduce() {
        std::vector<Node> nodes = begin();
        Cost cost;
        for (int level = nodes[0].tree.levels(); level > 0; --level) pass(nodes, cost);
        EXPECT_EQ(nodes[0].values[0], right_value(0, n_units_));
        for (const bool has : descend(nodes)) EXPECT_TRUE(has) << "a node without the result";
        return sum_of(nodes, cost);
    }
    // Carries out a scan; the prefix of each block must be the right one.
    Cost scan() {
        std::vector<Node> nodes = begin();
        Cost cost;
        for (int level = nodes[0].tree.levels(); level > 0; --level) pass(nodes, cost);
        for (size_t level = nodes[0].kept.size(); level-- > 0;) pass_down(nodes, level, cost);
        const RightPrefixes right(n_units_);
        for (Node& node : nodes) {
            for (size_t i = 0; i < node.values.size(); ++i) {
                if (const int first = node.tree.blocks()[i].first; first != 0) {
                    EXPECT_EQ(node.values[i], right.before(first)) << first;
                }
            }
        }
        return sum_of(nodes, cost);
    }

  private:
    struct Kept {
        Level level;
        std::vector<uint64_t> lefts;  // those of the receipts, then those of the pairs
    };
    struct Node {
        Tree tree;
        std::vector<uint64_t> values = {};  // of its blocks
        std::vector<Kept> kept = {};        // by level
        int now = 0, sent = 0, received = 0;
    };
    struct Message {
        std::vector<uint64_t> values;
        int sent_at = 0;
    };

    std::vector<Node> begin() const {
        std::vector<Node> nodes;
        nodes.reserve(mine_.size());
        for (int node = 0; node < n_nodes(); ++node) {
            const std::vector<int>& mine = mine_[static_cast<size_t>(node)];
            nodes.push_back({Tree(n_units_, node, mine.data(), static_cast<int>(mine.size()), node_of_)});
            for (const Tree::Block& block : nodes.back().tree.blocks())
                nodes.back().values.push_back(right_value(block.first, block.count));
        }
        return nodes;
    }
    static Cost sum_of(const std::vector<Node>& nodes, Cost cost) {
        for (const Node& node : nodes) {
            cost.messages += static_cast<uint64_t>(node.sent);
            cost.most_sent = std::max(cost.most_sent, node.sent);
            cost.most_received = std::max(cost.most_received, node.received);
            cost.rounds = std::max(cost.rounds, node.now);
        }
        return cost;
    }

    static void require(bool holds) {
        if (!holds)
            throw std::logic_error("nodes are not numbered by their first units");
    }
    static uint64_t pair(int from, int to) { return static_cast<uint64_t>(from) << 32 | static_cast<uint32_t>(to); }

    using Network = std::unordered_map<uint64_t, Message>;

    // Sends value_of(i) as transfer i, in a message to each node.
    template <class Value>
    static void send(Network& under_way, Node& node, int number, const std::vector<Transfer>& transfers, Cost& cost,
                     Value value_of) {
        int last = -1;
        for (size_t i = 0; i < transfers.size(); ++i) {
            Message& message = under_way[pair(number, transfers[i].node)];
            message.values.push_back(value_of(i));
            message.sent_at = node.now;
            cost.most_of_one = std::max<uint64_t>(cost.most_of_one, message.values.size());
            node.sent += transfers[i].node != last;
            last = transfers[i].node;
        }
    }
    // Calls visit(i, value) for what has come as transfer i.
    template <class Visit>
    static void read(Network& under_way, Node& node, int number, const std::vector<Transfer>& transfers, Visit visit) {
        int last = -1;
        size_t next = 0;
        for (size_t i = 0; i < transfers.size(); ++i) {
            const int from = transfers[i].node;
            Message& message = under_way[pair(from, number)];
            node.received += from != last;
            next = from != last ? 0 : next;
            last = from;
            node.now = std::max(node.now, message.sent_at + 1);
            ASSERT_LT(next, message.values.size()) << "a value that is not sent";
            visit(i, message.values[next++]);
            if (next == message.values.size())
                under_way.erase(pair(from, number));
        }
    }

    // One level: all nodes send, then all read.
    static void pass(std::vector<Node>& nodes, Cost& cost) {
        Network under_way;
        for (size_t i = 0; i < nodes.size(); ++i) {
            Node& node = nodes[i];
            Kept kept = {node.tree.next(), {}};
            const Level& level = kept.level;
            for (const Transfer& transfer : level.receipts) kept.lefts.push_back(node.values[transfer.block]);
            for (const auto& [left, right] : level.pairs) kept.lefts.push_back(node.values[left]);
            send(under_way, node, static_cast<int>(i), level.sends, cost,
                 [&](size_t j) { return node.values[level.sends[j].block]; });
            node.kept.push_back(std::move(kept));
        }
        for (size_t i = 0; i < nodes.size(); ++i) {
            Node& node = nodes[i];
            const Level& level = node.kept.back().level;
            read(under_way, node, static_cast<int>(i), level.receipts, [&](size_t j, uint64_t right) {
                uint64_t& left = node.values[level.receipts[j].block];
                left = combine(left, right);
            });
            for (const auto& [left, right] : level.pairs)
                node.values[left] = combine(node.values[left], node.values[right]);
        }
        EXPECT_TRUE(under_way.empty()) << "a value that is not read";
    }
    // A scan's way back through a level, on which values are prefixes.
    static void pass_down(std::vector<Node>& nodes, size_t number, Cost& cost) {
        Network under_way;
        for (size_t i = 0; i < nodes.size(); ++i) {
            Node& node = nodes[i];
            const auto& [level, lefts] = node.kept[number];
            const auto sum = [&, all = lefts.data()](size_t block, size_t j) {
                return node.tree.blocks()[block].first == 0 ? all[j] : combine(node.values[block], all[j]);
            };
            send(under_way, node, static_cast<int>(i), level.receipts, cost,
                 [&, &receipts = level.receipts](size_t j) { return sum(receipts[j].block, j); });
            for (size_t j = 0; j < level.pairs.size(); ++j)
                node.values[level.pairs[j].second] = sum(level.pairs[j].first, level.receipts.size() + j);
        }
        for (size_t i = 0; i < nodes.size(); ++i) {
            const std::vector<Transfer>& sends = nodes[i].kept[number].level.sends;
            read(under_way, nodes[i], static_cast<int>(i), sends,
                 [&](size_t j, uint64_t prefix) { nodes[i].values[sends[j].block] = prefix; });
        }
        EXPECT_TRUE(under_way.empty()) << "a prefix that is not read";
    }
    // The result goes down the nodes, of which a parent has a lower number than its children. Returns for each node
    // whether it has the result.
    static std::vector<bool> descend(std::vector<Node>& nodes) {
        const int n_nodes = static_cast<int>(nodes.size());
        std::vector<bool> has(nodes.size());
        has[0] = true;
        for (int i = 0; i < n_nodes; ++i) {
            Node& node = nodes[static_cast<size_t>(i)];
            const BinomialTree tree = binomial_tree(n_nodes, i);
            EXPECT_TRUE(i == 0 ? tree.parent < 0 : tree.parent >= 0 && tree.parent < i);
            for (const int child : tree.children) {
                EXPECT_EQ(binomial_tree(n_nodes, child).parent, i);
                EXPECT_FALSE(has[static_cast<size_t>(child)]);
                has[static_cast<size_t>(child)] = true;
                Node& to = nodes[static_cast<size_t>(child)];
                to.now = std::max(to.now, node.now + 1);
                ++to.received;
                ++node.sent;
            }
        }
        return has;
    }

    const int n_units_;
    const NodeOf node_of_;
    std::vector<std::vector<int>> mine_;  // by node: its units
};

TEST(ReductionTree, HasOneResultOnAnyPlacement) {
    const unsigned seed = std::random_device()();
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    for (int round = 0; round < 2000; ++round) {
        const int n_units = 1 + static_cast<int>(random() % 70), most = 1 + static_cast<int>(random() % 12);
        std::vector<int> number(static_cast<size_t>(most), -1), nodes;
        int n_nodes = 0;
        for (int unit = 0; unit < n_units; ++unit) {
            const bool stays = unit > 0 && random() % 3 != 0;  // neighbours often share a node
            int& node = number[random() % static_cast<size_t>(most)];
            if (!stays && node < 0)
                node = n_nodes++;
            nodes.push_back(stays ? nodes.back() : node);
        }
        const Cost cost = Job(n_units, [&](int unit) { return nodes[static_cast<size_t>(unit)]; }).reduce();
        EXPECT_LE(cost.messages, static_cast<uint64_t>(n_units - 1 + n_nodes - 1));
        EXPECT_LE(cost.rounds, log2_up(n_units) + log2_up(n_nodes));
    }
}

TEST(ReductionTree, HasTheRightPrefixesOfEachNumberOfUnits) {
    for (int n_units = 1; n_units <= 300; ++n_units)
        for (const int per_node : {1, 2, 3, 7, 8, 64}) {
            Job(n_units, [&](int unit) { return unit / per_node; }).scan();
            const int n_nodes = (n_units + per_node - 1) / per_node;
            Job(n_units, [&](int unit) { return unit % n_nodes; }).scan();
        }
}

// Of the largest job. `make test-rest` has a million.
int most_nodes() {
    const char* const text = getenv("HEDDLE_TEST_NODES");
    return text ? atoi(text) : 100000;
}

// One member a node: 2 (n - 1) messages, at most 20 of a node, and 40 rounds at a million.
TEST(ReductionTree, OfAScanTakesTwoMessagesANodeOfAMillion) {
    for (const int n : {2, 3, 4, 5, 64, 1000, 4096, 7813, most_nodes()}) {
        const Cost cost = Job(n, [](int unit) { return unit; }).scan();
        EXPECT_EQ(cost.messages, 2 * static_cast<uint64_t>(n - 1)) << n;
        EXPECT_LE(cost.rounds, 2 * log2_up(n)) << n;
        EXPECT_LE(cost.most_sent, log2_up(n)) << n;
        EXPECT_LE(cost.most_received, log2_up(n)) << n;
        EXPECT_EQ(cost.most_of_one, 1u) << n;
        printf("scan of %7d nodes: %8lu messages, of a node at most %2d sent %2d received, %2d rounds\n", n,
               static_cast<unsigned long>(cost.messages), cost.most_sent, cost.most_received, cost.rounds);
    }
    for (const int n_units : {4097, most_nodes()})
        for (const int per_node : {128, 127}) {
            const int n_nodes = (n_units + per_node - 1) / per_node;
            const Cost cost = Job(n_units, [&](int unit) { return unit / per_node; }).scan();
            EXPECT_LE(cost.rounds, 2 * log2_up(n_units));
            EXPECT_LE(cost.most_sent, 2 * log2_up(n_units));
            printf("scan of %7d members on %d nodes: %lu messages, of a node at most %d sent %d received, %d rounds\n",
                   n_units, n_nodes, static_cast<unsigned long>(cost.messages), cost.most_sent, cost.most_received,
                   cost.rounds);
        }
}

TEST(ReductionTree, HasOneResultForEachNumberOfUnits) {
    for (int n_units = 1; n_units <= 300; ++n_units)
        for (const int per_node : {1, 2, 3, 7, 8, 64}) Job(n_units, [&](int unit) { return unit / per_node; }).reduce();
}

// One unit a node: integers, whatever the placement; and floating-point numbers with one PE a node.
TEST(ReductionTree, TakesTwoMessagesANodeOfAMillion) {
    for (const int n : {2, 3, 4, 5, 64, 1000, 4096, 7813, 1 << 16, most_nodes()}) {
        const Cost cost = Job(n, [](int unit) { return unit; }).reduce();
        EXPECT_EQ(cost.messages, 2 * static_cast<uint64_t>(n - 1)) << n;
        EXPECT_LE(cost.rounds, 2 * log2_up(n)) << n;
        EXPECT_LE(cost.most_sent, log2_up(n)) << n;
        EXPECT_LE(cost.most_received, log2_up(n)) << n;
        EXPECT_EQ(cost.most_of_one, 1u) << n;
    }
}

void expect_few(const char* shape, int n_units, int per_node, const Cost& cost, int n_nodes) {
    SCOPED_TRACE(testing::Message() << shape << ", " << n_units << " members, " << n_nodes << " nodes");
    const int log = log2_up(n_units), log_nodes = log2_up(n_nodes);
    EXPECT_LE(cost.rounds, log + log_nodes);
    EXPECT_LE(cost.most_sent, 2 * log + log_nodes);
    EXPECT_LE(cost.most_received, 2 * log + 1);
    EXPECT_LE(cost.most_of_one, static_cast<uint64_t>(per_node));
    printf("%-10s %7d members %7d nodes: %8lu messages, of a node at most %2d sent %2d received, %2d rounds\n", shape,
           n_units, n_nodes, static_cast<unsigned long>(cost.messages), cost.most_sent, cost.most_received,
           cost.rounds);
}

TEST(ReductionTree, TakesFewMessagesOfMembersInBlocksAndInTurns) {
    for (const int n_units : {1000, 4097, 10000, most_nodes()}) {
        for (const int per_node : {128, 127, 96, 7}) {
            const int n_nodes = (n_units + per_node - 1) / per_node;
            const Cost blocks = Job(n_units, [&](int unit) { return unit / per_node; }).reduce();
            expect_few("blocks", n_units, per_node, blocks, n_nodes);
            if (per_node == 128) {
                EXPECT_EQ(blocks.messages, 2 * static_cast<uint64_t>(n_nodes - 1));
                EXPECT_LE(blocks.rounds, 2 * log2_up(n_nodes));
            }
            expect_few("in turns", n_units, per_node, Job(n_units, [&](int unit) { return unit % n_nodes; }).reduce(),
                       n_nodes);
        }
    }
}

}  // namespace
}  // namespace heddle::collective::internode
