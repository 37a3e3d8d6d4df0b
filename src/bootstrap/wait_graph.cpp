#include "bootstrap/wait_graph.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace heddle::bootstrap {

namespace {

// By slot: the slots that a PE waits for.
using Graph = std::vector<std::set<int>>;

std::string function_of(const WaitState& wait) {
    size_t length = 0;
    while (length < sizeof wait.function && isgraph(static_cast<unsigned char>(wait.function[length]))) ++length;
    return {wait.function, length};
}

bool waits_since(const std::vector<WaitState>& waits, uint64_t since_ns) {
    return std::any_of(waits.begin(), waits.end(), [&](const WaitState& wait) { return wait.since_ns == since_ns; });
}

Graph build(const JobPage& page, const std::vector<std::vector<WaitState>>& waits) {
    const int n_slots = static_cast<int>(waits.size());
    Graph graph(waits.size());
    std::map<int, int> slot_of;
    for (int slot = 0; slot < n_slots; ++slot) slot_of[pe_of(page, slot)] = slot;
    for (int slot = 0; slot < n_slots; ++slot) {
        const auto at = static_cast<size_t>(slot);
        for (const WaitState& wait : waits[at])
            if (const auto holder = slot_of.find(wait.holder);
                wait.awaits == WaitState::Awaits::kLock && holder != slot_of.end())
                graph[at].insert(holder->second);
        // Both waits must be those that this PE has looked at: a PE that has gone on owes nothing.
        Waiters found;
        if (!page.statuses()[slot].waiters.read(&found) || !waits_since(waits[at], found.since_ns))
            continue;
        for (uint64_t i = 0; i < std::min<uint64_t>(found.number, Waiters::kMost); ++i) {
            const int64_t other = found.waiters[i].slot;
            if (other >= 0 && other < n_slots && other != slot &&
                waits_since(waits[static_cast<size_t>(other)], found.waiters[i].since_ns))
                graph[static_cast<size_t>(other)].insert(slot);
        }
    }
    return graph;
}

// A shortest way from a slot back to itself; empty: none.
std::vector<int> cycle_from(const Graph& graph, int begin) {
    std::map<int, int> before;
    std::vector<int> reached = {begin};
    for (size_t i = 0; i < reached.size(); ++i) {
        for (const int next : graph[static_cast<size_t>(reached[i])]) {
            if (next == begin) {
                std::vector<int> way;
                for (int at = reached[i]; at != begin; at = before[at]) way.insert(way.begin(), at);
                way.insert(way.begin(), begin);
                return way;
            }
            if (before.emplace(next, reached[i]).second)
                reached.push_back(next);
        }
    }
    return {};
}

// "PE 0 (in shmem_set_lock) waits for PE 1 (in shmem_barrier_all), which waits for PE 0"
std::string cycle_text(const JobPage& page, const std::vector<std::vector<WaitState>>& waits,
                       const std::vector<int>& way) {
    const auto name = [&](int slot) { return "PE " + std::to_string(pe_of(page, slot)); };
    std::string text;
    for (const int slot : way) {
        const auto& here = waits[static_cast<size_t>(slot)];
        text += text.empty() ? "" : slot == way[1] ? " waits for " : ", which waits for ";
        text += name(slot) + (here.empty() ? "" : " (in " + function_of(here[0]) + ")");
    }
    if (way.size() == 1)
        return text + " waits for a lock that it holds itself";
    return text + ", which waits for " + name(way[0]);
}

void add_cycles(const JobPage& page, const std::vector<std::vector<WaitState>>& waits, const Graph& graph,
                std::vector<std::string>* text, std::set<int>* told) {
    for (size_t slot = 0; slot < graph.size(); ++slot) {
        if (told->count(static_cast<int>(slot)) != 0)
            continue;
        const std::vector<int> way = cycle_from(graph, static_cast<int>(slot));
        if (way.empty() || std::any_of(way.begin(), way.end(), [&](int at) { return told->count(at) != 0; }))
            continue;
        text->push_back(cycle_text(page, waits, way));
        told->insert(way.begin(), way.end());
    }
}

void add_mismatches(const JobPage& page, const std::vector<std::vector<WaitState>>& waits,
                    std::vector<std::string>* text) {
    std::map<std::pair<uint64_t, int>, std::pair<std::string, int>> first;
    std::set<std::pair<uint64_t, int>> told;
    for (size_t slot = 0; slot < waits.size(); ++slot) {
        for (const WaitState& wait : waits[slot]) {
            if (wait.step == 0)
                continue;
            const std::pair key(wait.step, wait.step & WaitState::kStepOnNode ? wait.node : -1);
            const int pe = pe_of(page, static_cast<int>(slot));
            const auto [found, is_new] = first.emplace(key, std::pair(function_of(wait), pe));
            const auto& [function, other] = found->second;
            if (is_new || function == function_of(wait) || !told.insert(key).second)
                continue;
            text->push_back("PE " + std::to_string(other) + " is in " + function + " where PE " + std::to_string(pe) +
                            " is in " + function_of(wait) +
                            ": right would be the same collectives on all members of the team; HEDDLE_CHECK=1 compares "
                            "them");
        }
    }
}

// True when one of these PEs has more waiters than it has published.
bool are_more(const JobPage& page, const std::vector<int>& pes) {
    for (uint32_t slot = 0; slot < page.n_pes; ++slot) {
        Waiters found;
        if (std::binary_search(pes.begin(), pes.end(), pe_of(page, static_cast<int>(slot))) &&
            page.statuses()[slot].waiters.read(&found) && found.number > Waiters::kMost)
            return true;
    }
    return false;
}

// A line for each group of PEs that wait for the same PEs, without those of a cycle that has been told.
void add_awaited(const JobPage& page, const Graph& graph, const std::set<int>& told, std::vector<std::string>* text) {
    std::map<std::vector<int>, std::vector<int>> waiting;  // by the PEs that are awaited
    for (int slot = 0; slot < static_cast<int>(graph.size()); ++slot) {
        std::vector<int> awaited;
        for (const int other : graph[static_cast<size_t>(slot)])
            if (other != slot && (told.count(other) == 0 || told.count(slot) == 0))
                awaited.push_back(pe_of(page, other));
        std::sort(awaited.begin(), awaited.end());
        if (!awaited.empty())
            waiting[awaited].push_back(pe_of(page, slot));
    }
    for (auto& [awaited, pes] : waiting) {
        std::sort(pes.begin(), pes.end());
        text->push_back((pes.size() == 1 ? "PE " : "PEs ") + describe_numbers(pes) +
                        (are_more(page, awaited) ? " and others" : "") +
                        (pes.size() == 1 && !are_more(page, awaited) ? " waits for PE" : " wait for PE") +
                        (awaited.size() == 1 ? " " : "s ") + describe_numbers(awaited));
    }
}

}  // namespace

std::vector<std::string> describe_unacked(const JobPage& page, int n_slots) {
    std::vector<std::string> text;
    for (int slot = 0; slot < n_slots; ++slot) {
        Unacked found;
        if (!page.statuses()[slot].unacked.read(&found) || !waits_since(waits_of(page, slot), found.since_ns))
            continue;
        for (uint64_t i = 0; i < std::min(found.number, Unacked::kMost); ++i) {
            const Unacked::Target& target = found.targets[i];
            text.push_back("PE " + std::to_string(pe_of(page, slot)) + " has sent " +
                           std::to_string(target.sent_bytes) + " bytes to PE " + std::to_string(target.pe) +
                           ", which has acknowledged " + std::to_string(target.acked_bytes));
            if (target.replies != 0)
                text.back() += "; replies outstanding: " + std::to_string(target.replies);
        }
        if (found.number > Unacked::kMost)
            text.push_back("PE " + std::to_string(pe_of(page, slot)) + " waits for acknowledgements of " +
                           std::to_string(found.number - Unacked::kMost) + " further PEs");
    }
    return text;
}

std::string describe_numbers(const std::vector<int>& numbers) {
    std::string text;
    for (size_t first = 0; first < numbers.size();) {
        size_t last = first;
        while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
        text += (text.empty() ? "" : ", ") + std::to_string(numbers[first]);
        if (last > first)
            text.append("-").append(std::to_string(numbers[last]));
        first = last + 1;
    }
    return text;
}

std::vector<WaitState> waits_of(const JobPage& page, int slot) {
    std::vector<WaitState> waits;
    for (uint32_t entry = 0; entry < PeStatus::kThreads; ++entry) {
        WaitState wait;
        if (page.statuses()[slot].read(entry, &wait))
            waits.push_back(wait);
    }
    std::sort(waits.begin(), waits.end(),
              [](const WaitState& a, const WaitState& b) { return a.since_ns < b.since_ns; });
    return waits;
}

int pe_of(const JobPage& page, int slot) {
    const uint32_t pe = page.records()[slot].pe.load(std::memory_order_relaxed);
    return pe == 0 ? slot : static_cast<int>(pe - 1);
}

std::vector<std::string> describe_relations(const JobPage& page, int n_slots) {
    std::vector<std::vector<WaitState>> waits;
    waits.reserve(static_cast<size_t>(n_slots));
    for (int slot = 0; slot < n_slots; ++slot) waits.push_back(waits_of(page, slot));
    const Graph graph = build(page, waits);
    std::vector<std::string> text;
    std::set<int> told;
    add_cycles(page, waits, graph, &text, &told);
    add_mismatches(page, waits, &text);
    add_awaited(page, graph, told, &text);
    return text;
}

}  // namespace heddle::bootstrap
