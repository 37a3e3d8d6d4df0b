// The numbers of nodes against their definition, and how often the numbering asks for a PE's leader: once for each PE,
// for a million as for three.
#include "bootstrap/node_numbers.h"

#include <gtest/gtest.h>
#include <cstdint>
#include <random>
#include <vector>

namespace heddle::bootstrap {
namespace {

struct Numbered {
    std::vector<int> nodes, firsts;
    uint64_t asked = 0;  // how often a leader was asked for
};

template <class LeaderOf>
Numbered number(int n_pes, LeaderOf leader_of, int pes_per_node = 0) {
    Numbered result;
    result.nodes.assign(static_cast<size_t>(n_pes), -1);
    const auto counted = [&](int pe) {
        ++result.asked;
        return leader_of(pe);
    };
    result.firsts = number_nodes(n_pes, counted, pes_per_node, result.nodes.data());
    return result;
}

// The definition: a PE is on the node of the first PE with its leader and its group.
void expect_right(const std::vector<int>& leaders, int pes_per_node) {
    const int n_pes = static_cast<int>(leaders.size());
    const Numbered got = number(n_pes, [&](int pe) { return leaders[static_cast<size_t>(pe)]; }, pes_per_node);
    std::vector<int> firsts;
    for (int pe = 0; pe < n_pes; ++pe) {
        size_t node = 0;
        const auto is_node_of = [&](int first) {
            return leaders[static_cast<size_t>(first)] == leaders[static_cast<size_t>(pe)] &&
                   (pes_per_node == 0 || first / pes_per_node == pe / pes_per_node);
        };
        while (node < firsts.size() && !is_node_of(firsts[node])) ++node;
        if (node == firsts.size())
            firsts.push_back(pe);
        ASSERT_EQ(got.nodes[static_cast<size_t>(pe)], static_cast<int>(node)) << "PE " << pe << " of " << n_pes;
    }
    EXPECT_EQ(got.firsts, firsts);
}

TEST(NodeNumbers, AreThoseOfTheirDefinition) {
    const unsigned seed = std::random_device()();
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    for (int round = 0; round < 500; ++round) {
        const int n_pes = 1 + static_cast<int>(random() % 40), n_leaders = 1 + static_cast<int>(random() % 8);
        std::vector<int> leaders;
        for (int pe = 0; pe < n_pes; ++pe) leaders.push_back(static_cast<int>(random() % 8) % n_leaders % n_pes);
        for (const int pes_per_node : {0, 1, 2, 3, 40}) expect_right(leaders, pes_per_node);
    }
}

TEST(NodeNumbers, ALeaderNeedNotBeTheFirst) {
    expect_right({4, 3, 4, 3, 4}, 0);
    expect_right({2, 2, 2}, 0);
}

TEST(NodeNumbers, VisitEachOfAMillionPesOnce) {
    constexpr int kPes = 1000000, kPerNode = 128, kNodes = (kPes + kPerNode - 1) / kPerNode;
    const auto blocks = [](int pe) { return pe / kPerNode * kPerNode; };
    const auto cyclic = [](int pe) { return pe % kNodes; };
    const auto alone = [](int pe) { return pe; };
    const auto expect = [](const Numbered& got, int nodes) {
        EXPECT_EQ(got.firsts.size(), static_cast<size_t>(nodes));
        EXPECT_EQ(got.asked, static_cast<uint64_t>(kPes));
    };
    expect(number(kPes, blocks), kNodes);
    expect(number(kPes, cyclic), kNodes);
    expect(number(kPes, alone), kPes);
    expect(number(kPes, [](int) { return 0; }, 1), kPes);
}

}  // namespace
}  // namespace heddle::bootstrap
