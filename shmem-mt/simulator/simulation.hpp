// One simulation: cores send messages to their peers until all have arrived. shmem-mt/docs/simulator.md has the model.
//
// A server (a core, a network card's two directions, a link, a target's core) is the time up to which it is taken. A
// message takes a server from that time on, and the event lies at the end of its service. So a message costs one event
// when its core has handed it over, one for each packet and link, one when it arrives, and one for its acknowledgement.
//
// A transfer is a message, or the messages of a batch, which travel together. Each core has one peer, so a flow and its
// sending core have one number, and the target's state of a flow lies in its Core, too.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "event_queue.hpp"
#include "large_memory.hpp"
#include "scenario.hpp"
#include "statistics.hpp"
#include "topology.hpp"

namespace shmem_mt {

class Simulation {
  public:
    explicit Simulation(const Scenario& s)
        : s_(s),
          topology_(s),
          throughput_(senders(s) * s.messages, s.burst),
          adaptive_(s.rule != Rule::kOrdered && s.rule != Rule::kTwoSided),
          matched_first_(s.rule == Rule::kTwoSided && s.rendezvous_bytes > 0 && s.size_bytes >= s.rendezvous_bytes),
          window_(window_of(s)) {
        add_up_costs();
        const uint64_t cores = senders(s);
        cores_.resize(cores);
        transfers_.resize(cores * window_);
        nodes_.resize(s.nodes);
        find_peers();
        for (uint32_t i = 0; i < cores; ++i) link_free_transfers(i);
    }

    void run() {
        for (uint32_t core = 0; core < cores_.size(); ++core) post(core, 0);
        while (queue_.size() > 0) {
            const Event event = queue_.pop();
            ++events_;
            if (const Event* ahead = queue_.upcoming(kPrefetch))
                prefetch(*ahead);
            handle(event);
        }
    }

    uint64_t sent() const { return cores_.size() * s_.messages; }
    uint64_t events() const { return events_; }
    double bytes_delivered() const { return static_cast<double>(throughput_.done()) * s_.size_bytes; }
    const Throughput& throughput() const { return throughput_; }
    const Histogram& latency() const { return latency_; }
    const Reordering& reordering() const { return reordering_; }

  private:
    enum Kind : uint32_t { kReady, kFlush, kInject, kRoute, kRouteFreely, kEject, kClear, kAcknowledged };
    static constexpr uint32_t kNone = ~0U;
    static constexpr size_t kPrefetch = 12;  // events

    struct Core {
        Time free = 0;         // the sending core
        Time begun = 0;        // when it took up the message it is at
        Time target_free = 0;  // its peer, where that has work with messages
        uint32_t posted = 0, in_flight = 0, burst_left = 0;
        uint32_t free_transfer = kNone, open_transfer = kNone;  // open: the batch that still takes messages
        uint32_t expected = 0, highest = 0, buffered = 0;       // at the target: numbers of messages
        bool posting = false;                                   // a message is on its way from core to network card
    };

    struct Transfer {
        Time posted = 0;
        uint32_t core = 0, first = 0, messages = 0, packets_left = 0;
        uint32_t next_free = kNone;
        bool cleared = false;   // by the target of a rendezvous: now the data travels
        bool buffered = false;  // it waits at the target for one that was sent before
    };

    struct Node {
        Time inject_free = 0, eject_free = 0;
        uint32_t peer = 0;
    };

    static uint64_t senders(const Scenario& s) {
        return uint64_t{s.pattern == Pattern::kPair ? s.nodes / 2 : s.nodes} * s.cores;
    }

    // An acknowledgement of the reorder buffer says that everything up to there has left it, so that no more messages
    // are under way than it can hold.
    static uint32_t window_of(const Scenario& s) {
        if (s.rule == Rule::kAcknowledged)
            return 1;
        if (s.rule == Rule::kReorderBuffer)
            return std::min(s.outstanding, static_cast<uint32_t>(s.reorder_buffer));
        return s.outstanding;
    }

    void add_up_costs() {
        const double small_ns = s_.small_core_ns + s_.size_bytes / s_.small_bytes_per_s * 1e9;
        core_ = picoseconds(((s_.large ? s_.large_core_ns : small_ns) + s_.rule_ns) * s_.core_share);
        envelope_core_ = picoseconds((s_.small_core_ns + s_.rule_ns) * s_.core_share);
        const bool copies = s_.rule == Rule::kTwoSided && s_.copy_bytes_per_s > 0 && !matched_first_;
        const double copy_ns = copies ? s_.size_bytes / s_.copy_bytes_per_s * 1e9 : 0;
        target_ = picoseconds((s_.target_ns + copy_ns) * s_.core_share);
        nic_ = picoseconds(s_.nic_message_ns);
        startup_ = picoseconds(s_.large_startup_ns);
        nic_latency_ = picoseconds(s_.nic_latency_ns);
        hop_latency_ = picoseconds(s_.hop_latency_ns);
        answer_ = nic_latency_ + picoseconds(s_.ack_ns);
    }

    void find_peers() {
        const uint32_t nodes = s_.nodes;
        for (uint32_t i = 0; i < nodes; ++i)
            nodes_[i].peer = s_.pattern == Pattern::kPair ? (i + nodes / 2) % nodes : topology_.neighbour(i);
        if (s_.pattern != Pattern::kRandom)
            return;
        std::vector<uint32_t> order(nodes);  // a cycle through all nodes (Sattolo): no node is its own peer
        for (uint32_t i = 0; i < nodes; ++i) order[i] = i;
        Random random(s_.seed + 1ULL);
        for (uint32_t i = nodes - 1; i > 0; --i) std::swap(order[i], order[random.below(i)]);
        for (uint32_t i = 0; i < nodes; ++i) nodes_[i].peer = order[i];
    }

    void link_free_transfers(uint32_t core) {
        const uint32_t base = core * window_;
        for (uint32_t i = 0; i < window_; ++i) {
            transfers_[base + i].core = core;
            transfers_[base + i].next_free = i + 1 < window_ ? base + i + 1 : kNone;
        }
        cores_[core].free_transfer = base;
    }

    void handle(const Event& event) {
        switch (event.kind) {
            case kReady:
                return ready(event.slot, event.time);
            case kFlush:
                return flush(event.slot, event.time);
            case kInject:
                return inject(event.slot, event.time);
            case kRoute:
            case kRouteFreely:
                return route(event);
            case kEject:
                return eject(event);
            case kClear:
                return clear(event.slot, event.time);
            default:
                return acknowledged(event.slot, event.time);
        }
    }

    void push(Time time, Kind kind, uint32_t slot) { queue_.push({time, 0, kind, slot, 0, 0, 0}); }

    void prefetch(const Event& event) const {
        if (event.kind == kRoute || event.kind == kRouteFreely)
            return topology_.prefetch(event.router);
        if (event.kind == kReady)
            return __builtin_prefetch(&cores_[event.slot]);
        __builtin_prefetch(&transfers_[event.slot]);
        __builtin_prefetch(&cores_[event.slot / window_]);
    }

    // The sending core.

    // Begins the core's next message, when it may send one and is not at work on one.
    void post(uint32_t index, Time now) {
        Core& core = cores_[index];
        if (core.posting || core.posted == s_.messages || !may_post(core))
            return;
        core.posting = true;
        ++core.posted;
        ++core.in_flight;
        core.begun = std::max(now, core.free);
        core.free = core.begun + (matched_first_ ? envelope_core_ : core_);
        push(core.free, kReady, index);
    }

    bool may_post(Core& core) {
        if (core.open_transfer != kNone && full(transfers_[core.open_transfer]))
            return false;
        if (!s_.burst)
            return core.in_flight < window_;
        if (core.burst_left == 0 && core.in_flight > 0)
            return false;
        if (core.burst_left == 0)
            core.burst_left = window_;
        --core.burst_left;
        return true;
    }

    double message_bytes() const { return s_.size_bytes + s_.header_bytes; }
    bool full(const Transfer& t) const { return (t.messages + 1) * message_bytes() > s_.batch_bytes; }

    void ready(uint32_t index, Time now) {
        Core& core = cores_[index];
        core.posting = false;
        if (core.open_transfer == kNone)
            open_transfer(core);
        const uint32_t transfer = core.open_transfer;
        Transfer& t = transfers_[transfer];
        ++t.messages;
        if (s_.batch_bytes <= 0 || s_.large) {
            core.open_transfer = kNone;
            launch(transfer, now);
        } else if (t.messages == 1) {
            flush(transfer, now);
        }
        post(index, now);
    }

    void open_transfer(Core& core) {
        Transfer& fresh = transfers_[core.free_transfer];
        core.open_transfer = core.free_transfer;
        core.free_transfer = fresh.next_free;
        fresh.posted = core.begun;
        fresh.first = core.posted - 1;
        fresh.messages = 0;
        fresh.cleared = false;
    }

    // Sends the batch as soon as the network would begin with it.
    void flush(uint32_t transfer, Time now) {
        Transfer& t = transfers_[transfer];
        const Time busy = std::max(nodes_[node_of(t)].inject_free, topology_.rail_free(adaptive_, t.core));
        if (busy > now)
            return push(busy, kFlush, transfer);
        cores_[t.core].open_transfer = kNone;
        launch(transfer, now);
        post(t.core, now);
    }

    // The network.

    double bytes_of(const Transfer& t) const {
        return matched_first_ && !t.cleared ? s_.header_bytes : t.messages * message_bytes();
    }

    uint32_t node_of(const Transfer& t) const { return t.core / s_.cores; }
    bool by_engine(const Transfer& t) const { return s_.large && !(matched_first_ && !t.cleared); }

    void launch(uint32_t transfer, Time now) {
        if (by_engine(transfers_[transfer]))
            return push(now + startup_, kInject, transfer);
        inject(transfer, now);
    }

    // Network cards take transfers one after the other.
    void inject(uint32_t transfer, Time now) {
        Transfer& t = transfers_[transfer];
        Node& node = nodes_[node_of(t)];
        const double rate = by_engine(t) ? std::min(s_.large_bytes_per_s, s_.nic_bytes_per_s) : s_.nic_bytes_per_s;
        const uint32_t kind = adaptive_ || t.cleared ? kRouteFreely : kRoute;
        const uint32_t from = topology_.router_of(node_of(t)), to = topology_.router_of(node.peer);
        node.inject_free = std::max(now, node.inject_free) + nic_;
        t.packets_left = 0;
        for (double left = bytes_of(t); left > 0 || t.packets_left == 0; left -= s_.packet_bytes) {
            const double bytes = std::min(s_.packet_bytes, left) + s_.packet_header_bytes;
            node.inject_free += service(bytes, 1e12 / rate);
            queue_.push({node.inject_free + nic_latency_, 0, kind, transfer, from, to, static_cast<float>(bytes)});
            ++t.packets_left;
        }
    }

    void route(Event event) {
        if (event.router == event.to)
            return eject(event);
        const auto hop = topology_.forward(event, event.kind == kRouteFreely, event.slot / window_);
        if (hop.router == event.to)
            event.kind = kEject;
        event.time = hop.router == event.to ? hop.tail : hop.head;
        event.router = hop.router;
        queue_.push(event);
    }

    // The target.

    void eject(const Event& event) {
        Transfer& t = transfers_[event.slot];
        Node& node = nodes_[nodes_[node_of(t)].peer];
        const bool last = --t.packets_left == 0;
        node.eject_free =
            std::max(event.time, node.eject_free) + (last ? nic_ : 0) + service(event.bytes, 1e12 / s_.nic_bytes_per_s);
        if (last)
            arrive(event.slot, node.eject_free);
    }

    void arrive(uint32_t transfer, Time now) {
        Transfer& t = transfers_[transfer];
        Core& flow = cores_[t.core];
        if (t.cleared)
            return complete(transfer, now);
        note_order(t, flow);
        if (s_.rule == Rule::kReorderBuffer)
            return put_in_order(transfer, now);
        const Time done = release(t, flow, now);
        if (!matched_first_)
            return complete(transfer, done);
        push(done + way_back(t), kClear, transfer);
    }

    void note_order(const Transfer& t, Core& flow) {
        if (t.first < flow.highest) {
            reordering_.overtaken += t.messages;
            reordering_.distance += uint64_t{t.messages} * (flow.highest - t.first);
            reordering_.farthest = std::max<uint64_t>(reordering_.farthest, flow.highest - t.first);
        }
        flow.highest = std::max(flow.highest, t.first + t.messages - 1);
    }

    void put_in_order(uint32_t transfer, Time now) {
        Core& flow = cores_[transfers_[transfer].core];
        transfers_[transfer].buffered = true;
        flow.buffered += transfers_[transfer].messages;
        for (uint32_t next = transfer; next != kNone; next = buffered_next(transfers_[transfer].core)) {
            Transfer& t = transfers_[next];
            if (t.first != flow.expected)
                break;
            t.buffered = false;
            flow.buffered -= t.messages;
            complete(next, release(t, flow, now));
        }
        reordering_.most_buffered = std::max<uint64_t>(reordering_.most_buffered, flow.buffered);
    }

    // The transfer of that flow in the buffer whose turn it is.
    uint32_t buffered_next(uint32_t flow) const {
        if (cores_[flow].buffered == 0)
            return kNone;
        for (uint32_t i = flow * window_; i < (flow + 1) * window_; ++i)
            if (transfers_[i].buffered && transfers_[i].first == cores_[flow].expected)
                return i;
        return kNone;
    }

    // To the program, which works on the messages of a flow one after the other. When it has done so.
    Time release(const Transfer& t, Core& flow, Time now) {
        if (t.first != flow.expected)
            reordering_.released_out_of_order += t.messages;
        flow.expected = t.first + t.messages;
        if (target_ == 0)
            return now;
        flow.target_free = std::max(now, flow.target_free) + target_ * t.messages;
        return flow.target_free;
    }

    void complete(uint32_t transfer, Time now) {
        const Transfer& t = transfers_[transfer];
        latency_.add(now - t.posted, t.messages);
        push(now + way_back(t), kAcknowledged, transfer);
    }

    // Answers are short and find a network of their own: they take time, but no turn.
    Time way_back(const Transfer& t) const {
        const uint32_t from = node_of(t), to = nodes_[from].peer;
        const uint32_t hops = topology_.hops(topology_.router_of(to), topology_.router_of(from));
        return hops * hop_latency_ + answer_;
    }

    // Back at the sending core.

    void clear(uint32_t transfer, Time now) {
        Transfer& t = transfers_[transfer];
        Core& core = cores_[t.core];
        t.cleared = true;
        core.free = std::max(now, core.free) + core_;
        push(core.free + (s_.large ? startup_ : 0), kInject, transfer);
    }

    void acknowledged(uint32_t transfer, Time now) {
        const Transfer& t = transfers_[transfer];
        Core& core = cores_[t.core];
        throughput_.add(now, t.messages);
        core.in_flight -= t.messages;
        transfers_[transfer].next_free = core.free_transfer;
        core.free_transfer = transfer;
        post(t.core, now);
    }

    Scenario s_;
    Topology topology_;
    EventQueue queue_;
    Throughput throughput_;
    Histogram latency_;
    Reordering reordering_;
    const bool adaptive_;       // packets look for their way
    const bool matched_first_;  // two-sided: the data of a message leaves when the target has matched its envelope
    const uint32_t window_;
    Time core_ = 0, envelope_core_ = 0, target_ = 0, nic_ = 0, startup_ = 0;
    Time nic_latency_ = 0, hop_latency_ = 0, answer_ = 0;
    LargeVector<Core> cores_;
    LargeVector<Transfer> transfers_;  // `window_` of each core
    LargeVector<Node> nodes_;
    uint64_t events_ = 0;
};

}  // namespace shmem_mt
