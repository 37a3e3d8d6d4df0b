// The numbers of a job's nodes, from what each PE knows of all PEs. No state; any thread. Cost: one visit to each PE,
// and 8 bytes for each PE until it returns.
#pragma once

#include "base/invariant.h"

#include <cstddef>
#include <vector>

namespace heddle::bootstrap {

// Two PEs are on one node when they have the same leader (0 to n_pes - 1) and, if nodes are pretended, are in the same
// group of pes_per_node; 0: nodes are not pretended. Nodes are numbered in the order of their first PEs. Fills
// nodes[pe] for all PEs, and returns the first PE of each node.
template <class LeaderOf>
std::vector<int> number_nodes(int n_pes, LeaderOf leader_of, int pes_per_node, int* nodes) {
    // The last node of a leader's PEs. Groups only increase with the PEs, so no earlier node of the leader comes back.
    struct Last {
        int node = -1, group = 0;
    };
    std::vector<Last> lasts(static_cast<size_t>(n_pes));
    std::vector<int> firsts;
    for (int pe = 0; pe < n_pes; ++pe) {
        const int leader = leader_of(pe), group = pes_per_node != 0 ? pe / pes_per_node : 0;
        HEDDLE_INVARIANT(leader >= 0 && leader < n_pes);
        Last& last = lasts[static_cast<size_t>(leader)];
        if (last.node < 0 || last.group != group) {
            last = {static_cast<int>(firsts.size()), group};
            firsts.push_back(pe);
        }
        nodes[pe] = last.node;
    }
    return firsts;
}

}  // namespace heddle::bootstrap
