// The links between the nodes, and the links that each packet takes; a link is a server that takes one packet at a
// time. `direct` is two nodes with parallel rails. `torus` is a grid of routers that closes upon itself in x, y and z,
// with some nodes at each router and parallel links in each direction. An adaptive packet takes the link of a minimal
// path on which it would be through first, and draws among equal ones. Other packets go x, then y, then z, on the link
// of their flow's number.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "event_queue.hpp"
#include "large_memory.hpp"
#include "scenario.hpp"

namespace shmem_mt {

inline Time picoseconds(double ns) {
    return static_cast<Time>(std::llround(ns * 1000));
}

// A service time: at least a picosecond, so that what follows is later.
inline Time service(double bytes, double ps_per_byte) {
    return std::max<Time>(1, static_cast<Time>(bytes * ps_per_byte + 0.5));
}

// xorshift64*, after Marsaglia and Vigna: cheap, and good enough to break ties and to shuffle.
class Random {
  public:
    explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ULL + 0x2545f4914f6cdd1dULL) {
        for (int i = 0; i < 8; ++i) next();
    }

    uint64_t next() {
        state_ ^= state_ >> 12;
        state_ ^= state_ << 25;
        state_ ^= state_ >> 27;
        return state_ * 0x2545f4914f6cdd1dULL;
    }

    uint32_t below(uint32_t end) { return static_cast<uint32_t>(((next() >> 32) * end) >> 32); }

  private:
    uint64_t state_;
};

class Topology {
  public:
    struct Hop {
        Time head, tail;  // when the packet's begin and end are at the next router
        uint32_t router;
    };

    Topology(const Scenario& s)
        : torus_(s.torus), latency_(picoseconds(s.hop_latency_ns)), burst_bytes_(s.link_burst_bytes), random_(s.seed) {
        for (const double rate : s.bytes_per_s) ps_per_byte_.push_back(1e12 / rate);
        nodes_ = routers_ = s.nodes;
        if (s.torus) {
            routers_ = std::max((s.nodes + s.nodes_per_router - 1) / s.nodes_per_router, 2U);
            lay_out(routers_);
            for (int d = 0; d < 3; ++d) {
                parallel_[d] = static_cast<uint32_t>(s.links[static_cast<size_t>(d)]);
                offset_[d] = d ? offset_[d - 1] + 2 * parallel_[d - 1] : 0;
            }
            links_per_router_ = offset_[2] + 2 * parallel_[2];
            free_.assign(places_.size() * links_per_router_, 0);
        } else {
            for (size_t rail = 0; rail < ps_per_byte_.size(); ++rail) free_.push_back(burst(rail));  // empty buckets
        }
    }

    uint32_t router_of(uint32_t node) const {
        return static_cast<uint32_t>(static_cast<uint64_t>(node) * routers_ / nodes_);
    }

    // A node at the next router.
    uint32_t neighbour(uint32_t node) const { return (node + (nodes_ + routers_ - 1) / routers_) % nodes_; }

    uint32_t hops(uint32_t from, uint32_t to) const {
        if (!torus_)
            return 1;
        uint32_t count = 0;
        for (int d = 0; d < 3; ++d) count += std::min(ahead(d, from, to), sides_[d] - ahead(d, from, to));
        return count;
    }

    // When that flow can send something at once on a rail; on a torus nothing is known of the links.
    Time rail_free(bool adaptive, uint32_t flow) const {
        if (torus_)
            return 0;
        Time earliest = ~Time{0};
        for (size_t rail = 0; rail < free_.size(); ++rail)
            if (adaptive || rail == flow % free_.size())
                earliest = std::min(earliest, free_[rail] - std::min(free_[rail], burst(rail)));
        return earliest;
    }

    // Takes the packet, which has not arrived, one hop on.
    Hop forward(const Event& packet, bool adaptive, uint32_t flow) {
        if (!torus_)
            return take_rail(packet, adaptive, flow);
        const uint32_t from = packet.router;
        Choice best;
        const uint32_t draw = adaptive ? static_cast<uint32_t>(random_.next() >> 40) : 0;
        for (uint32_t i = 0; i < 3; ++i) {
            const int d = static_cast<int>((draw + i) % 3);
            const uint32_t distance = ahead(d, from, packet.to);
            if (distance == 0)
                continue;
            const bool tie = 2 * distance == sides_[d];
            if (2 * distance <= sides_[d])
                look(best, packet.time, from, d, 0, adaptive, draw, flow);
            if (2 * distance > sides_[d] || (tie && adaptive))
                look(best, packet.time, from, d, 1, adaptive, draw, flow);
            if (!adaptive)
                break;
        }
        free_[best.link] = best.start + service(packet.bytes, ps_per_byte_[0]);
        return {best.start + latency_, free_[best.link] + latency_, step(from, best.dimension, best.back)};
    }

    // For the processor's caches: what forward() will read.
    void prefetch(uint32_t router) const {
        if (torus_)
            __builtin_prefetch(&free_[static_cast<size_t>(router) * links_per_router_]);
    }

  private:
    struct Choice {
        Time start = ~Time{0};
        size_t link = 0;
        int dimension = 0;
        uint32_t back = 0;
    };

    // The sides whose product holds that many routers, as nearly equal as can be with few left over.
    void lay_out(uint32_t routers) {
        uint64_t best = ~uint64_t{0};
        for (uint32_t x = 1; x * x * x <= routers || x == 1; ++x)
            for (uint32_t y = x; uint64_t{x} * y * y <= routers || y == x; ++y) {
                const uint32_t z = (routers + x * y - 1) / (x * y);
                const uint64_t cost = uint64_t{x} * y * z * 4 + uint64_t{z} * z + uint64_t{y} * y + uint64_t{x} * x;
                if (cost < best)
                    best = cost, sides_[0] = std::max(z, y), sides_[1] = std::min(z, y), sides_[2] = x;
            }
        places_.reserve(static_cast<size_t>(sides_[0]) * sides_[1] * sides_[2]);
        for (uint32_t z = 0; z < sides_[2]; ++z)
            for (uint32_t y = 0; y < sides_[1]; ++y)
                for (uint32_t x = 0; x < sides_[0]; ++x) places_.push_back({x, y, z});
    }

    uint32_t coordinate(int d, uint32_t router) const { return places_[router][static_cast<size_t>(d)]; }

    // Steps forward, from one to the other, in that dimension.
    uint32_t ahead(int d, uint32_t from, uint32_t to) const {
        const uint32_t a = coordinate(d, from), b = coordinate(d, to);
        return b >= a ? b - a : b + sides_[d] - a;
    }

    uint32_t step(uint32_t router, int d, uint32_t back) const {
        const uint32_t stride = d == 0 ? 1 : d == 1 ? sides_[0] : sides_[0] * sides_[1];
        const uint32_t at = coordinate(d, router), last = sides_[d] - 1;
        if (back)
            return at == 0 ? router + last * stride : router - stride;
        return at == last ? router - last * stride : router + stride;
    }

    void look(Choice& best, Time now, uint32_t router, int d, uint32_t back, bool adaptive, uint32_t draw,
              uint32_t flow) const {
        const uint32_t count = parallel_[d];
        const size_t base = static_cast<size_t>(router) * links_per_router_ + offset_[d] + back * count;
        for (uint32_t i = 0; i < (adaptive ? count : 1); ++i) {
            const size_t link = base + (adaptive ? draw / 3 + i : flow) % count;
            const Time start = std::max(now, free_[link]);
            if (start < best.start)
                best = {start, link, d, back};
        }
    }

    // A rail passes packets on when it has all of them: it stands for a network with hosts on the way. It is a token
    // bucket: free_ is when the bucket will be full, so that what is sent may run ahead of the rate by the burst.
    Hop take_rail(const Event& packet, bool adaptive, uint32_t flow) {
        size_t rail = flow % free_.size();
        for (size_t other = 0; adaptive && other < free_.size(); ++other)
            if (full_again(packet, other) < full_again(packet, rail))
                rail = other;
        free_[rail] = full_again(packet, rail);
        const Time through = std::max(packet.time, free_[rail] - std::min(free_[rail], burst(rail))) + latency_;
        return {through, through, packet.to};
    }

    Time full_again(const Event& packet, size_t rail) const {
        return std::max(packet.time, free_[rail]) + service(packet.bytes, ps_per_byte_[rail]);
    }

    Time burst(size_t rail) const { return static_cast<Time>(burst_bytes_ * ps_per_byte_[rail]); }

    bool torus_;
    Time latency_;
    double burst_bytes_;
    Random random_;
    uint32_t nodes_ = 0, routers_ = 0, links_per_router_ = 0;
    uint32_t sides_[3] = {1, 1, 1}, parallel_[3] = {1, 1, 1}, offset_[3] = {0, 0, 0};
    std::vector<std::array<uint32_t, 3>> places_;  // of each router
    std::vector<double> ps_per_byte_;
    LargeVector<Time> free_;  // when each link has sent what it was given
};

}  // namespace shmem_mt
