// One simulation's input: a line of `name=value` words, as the driver (shmem_mt/simulation/network_model.py) writes it.
// The driver has checked the ranges and reports mistakes to people; a word that is unknown or missing here ends the
// program. shmem-mt/docs/simulator.md has the parameters and the equations.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace shmem_mt {

enum class Rule { kRelaxed, kOrdered, kReorderBuffer, kAcknowledged, kTwoSided };
enum class Pattern { kPair, kNeighbour, kRandom };

struct Scenario {
    // What is sent.
    uint32_t nodes = 0, cores = 0, outstanding = 0, seed = 0;
    uint64_t messages = 0;  // of each core
    double size_bytes = 0;
    Rule rule = Rule::kRelaxed;
    Pattern pattern = Pattern::kPair;
    bool burst = false;  // the window opens again when all of it is acknowledged; false: one by one
    // The cores and the two mechanisms.
    bool large = false;  // which of the two carries the messages
    double small_core_ns = 0, small_bytes_per_s = 0;
    double large_core_ns = 0, large_startup_ns = 0, large_bytes_per_s = 0;
    double rule_ns = 0;           // what the rule costs the sending core, a message
    double core_share = 1;        // active cores of a node, or 1 where each has a processor of its own
    double target_ns = 0;         // a message costs the target's core; the rule's part of it included
    double copy_bytes_per_s = 0;  // two-sided: out of the eager buffer; 0: nothing is copied
    double rendezvous_bytes = 0;  // two-sided: from this size on; 0: never
    double batch_bytes = 0;       // of messages gathered while the network is busy; 0: each leaves by itself
    double reorder_buffer = 0;    // messages of a flow that the target's buffer holds
    // The network.
    double nic_message_ns = 0, nic_bytes_per_s = 0, packet_bytes = 0;
    double header_bytes = 0, packet_header_bytes = 0;  // of each message; of each packet
    double link_burst_bytes = 0;                       // direct: what a rail may send at once after a rest
    double hop_latency_ns = 0, nic_latency_ns = 0, ack_ns = 0;
    bool torus = false;
    uint32_t nodes_per_router = 1;
    std::vector<double> links;        // torus: parallel links in x, y, z; direct: unused
    std::vector<double> bytes_per_s;  // torus: of each link, one number; direct: of each rail
};

[[noreturn]] inline void refuse(const std::string& what) {
    std::fprintf(stderr, "simulate: %s\n", what.c_str());
    std::exit(2);
}

class ScenarioReader {
  public:
    explicit ScenarioReader(const std::string& line) {
        std::istringstream words(line);
        for (std::string word; words >> word;) {
            const size_t split = word.find('=');
            if (split == std::string::npos)
                refuse(word + " is not name=value");
            values_[word.substr(0, split)] = word.substr(split + 1);
        }
    }

    Scenario read() {
        Scenario s;
        s.nodes = whole("nodes"), s.cores = whole("cores"), s.outstanding = whole("outstanding");
        s.seed = whole("seed"), s.messages = whole("messages"), s.size_bytes = number("size_bytes");
        s.rule =
            static_cast<Rule>(choice("rule", {"relaxed", "ordered", "reorder-buffer", "acknowledged", "two-sided"}));
        s.pattern = static_cast<Pattern>(choice("pattern", {"pair", "neighbour", "random"}));
        s.burst = choice("window", {"sliding", "burst"}) == 1;
        s.large = choice("mechanism", {"small", "large"}) == 1;
        s.small_core_ns = number("small_core_ns"), s.small_bytes_per_s = number("small_bytes_per_s");
        s.large_core_ns = number("large_core_ns"), s.large_startup_ns = number("large_startup_ns");
        s.large_bytes_per_s = number("large_bytes_per_s"), s.rule_ns = number("rule_ns");
        s.core_share = number("core_share"), s.target_ns = number("target_ns");
        s.copy_bytes_per_s = number("copy_bytes_per_s"), s.rendezvous_bytes = number("rendezvous_bytes");
        s.batch_bytes = number("batch_bytes"), s.reorder_buffer = number("reorder_buffer");
        s.nic_message_ns = number("nic_message_ns"), s.nic_bytes_per_s = number("nic_bytes_per_s");
        s.packet_bytes = number("packet_bytes"), s.header_bytes = number("header_bytes");
        s.packet_header_bytes = number("packet_header_bytes"), s.link_burst_bytes = number("link_burst_bytes");
        s.hop_latency_ns = number("hop_latency_ns"), s.nic_latency_ns = number("nic_latency_ns"),
        s.ack_ns = number("ack_ns");
        s.torus = choice("topology", {"direct", "torus"}) == 1;
        s.nodes_per_router = whole("nodes_per_router");
        s.links = numbers("links"), s.bytes_per_s = numbers("bytes_per_s");
        if (!values_.empty())
            refuse("no parameter is called " + values_.begin()->first);
        return s;
    }

  private:
    std::string take(const std::string& name) {
        const auto found = values_.find(name);
        if (found == values_.end())
            refuse("the parameter " + name + " is missing");
        std::string value = found->second;
        values_.erase(found);
        return value;
    }

    static double number_in(const std::string& name, const std::string& text) {
        char* end = nullptr;
        const double value = std::strtod(text.c_str(), &end);
        if (text.empty() || *end != 0 || !(value >= 0 && value < 1e18))
            refuse(name + "=" + text + ": not a number");
        return value;
    }

    double number(const std::string& name) { return number_in(name, take(name)); }

    uint32_t whole(const std::string& name) {
        const double value = number(name);
        if (value > 4e9)
            refuse(name + " is too large");
        return static_cast<uint32_t>(value);
    }

    std::vector<double> numbers(const std::string& name) {
        std::vector<double> found;
        std::stringstream stream(take(name));
        for (std::string item; std::getline(stream, item, ',');) found.push_back(number_in(name, item));
        return found;
    }

    int choice(const std::string& name, const std::vector<const char*>& names) {
        const std::string value = take(name);
        for (size_t i = 0; i < names.size(); ++i)
            if (value == names[i])
                return static_cast<int>(i);
        refuse(name + "=" + value + " is not known");
    }

    std::map<std::string, std::string> values_;
};

}  // namespace shmem_mt
