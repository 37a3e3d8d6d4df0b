// Who talks with whom in patterns of pairs, by where the PEs run. `hosts` has a number of its host for each PE. PEs are
// even in number.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace shmem_mt {

struct Partner {
    int pe = -1;  // -1: none
    bool sends = false;
};

// PE i of the lower half sends to PE i + n/2. One PE alone sends to itself.
inline Partner half_partner(int pe, int n_pes) {
    const bool sends = pe < (n_pes + 1) / 2;
    return {sends ? pe + n_pes / 2 : pe - n_pes / 2, sends};
}

// The PEs of each host, in the order of the hosts' first PEs, so that PE 0 comes first.
inline std::vector<std::vector<int>> pes_by_host(const std::vector<long>& hosts) {
    std::map<long, size_t> place;
    std::vector<std::vector<int>> found;
    for (size_t pe = 0; pe < hosts.size(); ++pe) {
        const auto [at, is_new] = place.emplace(hosts[pe], found.size());
        if (is_new)
            found.emplace_back();
        found[at->second].push_back(static_cast<int>(pe));
    }
    return found;
}

// Halves of that list of PEs, whose number is even, as pairs.
inline void pair_halves(const std::vector<int>& pes, std::vector<Partner>* partners) {
    const size_t half = pes.size() / 2;
    for (size_t i = 0; i < half; ++i) {
        (*partners)[static_cast<size_t>(pes[i])] = {pes[i + half], true};
        (*partners)[static_cast<size_t>(pes[i + half])] = {pes[i], false};
    }
}

// Pairs of PEs of one host; none where a host has an odd number.
inline std::vector<Partner> near_partners(const std::vector<long>& hosts) {
    std::vector<Partner> partners(hosts.size());
    for (const std::vector<int>& pes : pes_by_host(hosts)) {
        if (pes.size() % 2 != 0)
            return {};
        pair_halves(pes, &partners);
    }
    return partners;
}

// Pairs of PEs of two hosts; none where a host has more than half of the PEs. A host that has no more has none of these
// pairs for itself: n/2 is no shorter than its part of the row.
inline std::vector<Partner> far_partners(const std::vector<long>& hosts) {
    std::vector<int> row;
    for (const std::vector<int>& pes : pes_by_host(hosts)) {
        if (2 * pes.size() > hosts.size())
            return {};
        row.insert(row.end(), pes.begin(), pes.end());
    }
    std::vector<Partner> partners(hosts.size());
    pair_halves(row, &partners);
    return partners;
}

// All partners, as asked for: near, far, or empty: far where that can be. None where there are none such.
inline std::vector<Partner> partners_of(const std::vector<long>& hosts, const std::string& asked) {
    if (asked == "near")
        return near_partners(hosts);
    std::vector<Partner> partners = far_partners(hosts);
    if (partners.empty() && asked.empty()) {
        const int n_pes = static_cast<int>(hosts.size());
        for (int pe = 0; pe < n_pes; ++pe) partners.push_back(half_partner(pe, n_pes));
    }
    return partners;
}

// Where partners are: near, on one host; far, on two; or mixed.
inline std::string nearness(const std::vector<long>& hosts, const std::vector<Partner>& partners) {
    size_t near = 0;
    for (size_t pe = 0; pe < hosts.size(); ++pe) near += hosts[pe] == hosts[static_cast<size_t>(partners[pe].pe)];
    return near == 0 ? "far" : near == hosts.size() ? "near" : "mixed";
}

}  // namespace shmem_mt
