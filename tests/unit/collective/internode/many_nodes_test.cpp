// The collectives between nodes, carried out by thousands of nodes in one process: the library's code from
// CollectiveCall to the control inboxes, each node on a fiber, over a network with virtual time in place of
// internode_messages.cpp. Messages, bytes, rounds and time are compared with formulas, and results with the right ones.
// HEDDLE_TEST_NODES: the number of nodes, 256 without it. One PE a node. Nothing is random, and no clock is read.
#include "base/lifecycle.h"
#include "base/settings.h"
#include "collective/internode/internode.h"
#include "collective/internode/internode_step.h"
#include "fabric/endpoint/control_inbox.h"
#include "memory/symmetric.h"
#include "progress/engine.h"
#include "progress/fiber.h"
#include "progress/wait_policy.h"
#include "team/team.h"

#include <gtest/gtest.h>
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

namespace heddle::collective {
namespace {

// The cost of a message (LogGP; Alexandrov and others 1995): kOverhead at its sender and its reader, kByte for each byte
// at the sender, which sends one after the other, and kLatency between. About those of a fast network.
constexpr double kLatencyUs = 2, kOverheadUs = 0.5, kByteUs = 0.0001;

struct Stamp {
    double arrives_us;
    int round;  // messages one after the other, this one included
};

struct Node {
    memory::Symmetric symmetric;
    team::Team team;
    team::Span span;
    std::unique_ptr<team::OwnSegment> segment = std::make_unique<team::OwnSegment>();
    std::vector<char> heap;
    fabric::ControlInbox control_inbox;
    progress::Fiber fiber;
    std::vector<std::unique_ptr<progress::Fiber>> helpers;  // the other threads of its group
    int threads = 1;
    // Of the collective under way.
    double now_us = 0;
    int round = 0, sent = 0, received = 0;
    size_t bytes = 0, longest = 0;

    Stamp send(size_t message_bytes) {
        now_us += kOverheadUs + static_cast<double>(message_bytes) * kByteUs;
        ++sent;
        bytes += message_bytes;
        longest = std::max(longest, message_bytes);
        return {now_us + kLatencyUs, round + 1};
    }
    void receive(const Stamp& stamp) {
        now_us = std::max(now_us, stamp.arrives_us) + kOverheadUs;
        round = std::max(round, stamp.round);
        ++received;
    }
};

std::vector<std::unique_ptr<Node>> nodes;

Node& node_here() {
    return *nodes[static_cast<size_t>(memory::symmetric->pe)];
}

}  // namespace

// In place of internode_messages.cpp.
void InternodeStep::post(int to_rank, const fabric::ControlKey& key, const void* data, size_t bytes) const {
    const Stamp stamp = node_here().send(fabric::record::control_bytes(bytes));
    std::vector<char> message;
    append(message, &stamp, sizeof stamp);
    append(message, data, bytes);
    ASSERT_TRUE(nodes[static_cast<size_t>(pe(to_rank))]->control_inbox.deliver(key, coll_.team.members.pe(coll_.rank()),
                                                                               message.data(), message.size()));
}

size_t InternodeStep::take(int from_rank, const fabric::ControlKey& key, void* data, size_t bytes) const {
    Node& here = node_here();
    std::vector<char> message(sizeof(Stamp) + bytes);
    size_t length = 0;
    fabric::ControlInbox::Stray stray;
    auto ready = [&] {
        return here.control_inbox.take(key, pe(from_rank), message.data(), message.size(), &length, &stray) ||
               stray.pe >= 0;
    };
    progress::Fiber::current()->wait(ready);
    if (stray.pe >= 0)
        end_by(stray);
    Stamp stamp;
    memcpy(&stamp, message.data(), sizeof stamp);
    here.receive(stamp);
    if (length > sizeof stamp)
        memcpy(data, message.data() + sizeof stamp, length - sizeof stamp);
    return length - sizeof stamp;
}

// Data is at once in its place; its bytes are those of the message behind it.
void InternodeStep::put(int to_rank, void* dest, const void* source, size_t bytes) const {
    Node& here = node_here();
    memcpy(nodes[static_cast<size_t>(pe(to_rank))]->heap.data() + (static_cast<char*>(dest) - here.heap.data()), source,
           bytes);
    here.now_us += static_cast<double>(bytes) * kByteUs;
    here.bytes += bytes;
    here.longest = std::max(here.longest, bytes + fabric::record::control_bytes(sizeof bytes));
}

void InternodeStep::deliver(int to_rank, uint32_t round, void* dest, const void* source, size_t bytes) const {
    put(to_rank, dest, source, bytes);
    tell_put(to_rank, round, bytes);
}

void InternodeStep::go(int) const {}
void InternodeStep::done(int) const {}

namespace {

using Work = void (*)(CollectiveCall& coll, uint64_t* dest, const uint64_t* source);

constexpr size_t kValues = 128;  // of a node in a tree: 1 KiB
constexpr uint64_t kPrime = 1000003;

void sum(void* dest, const void* a, const void* b, size_t count) {
    for (size_t i = 0; i < count; ++i)
        static_cast<uint64_t*>(dest)[i] = static_cast<const uint64_t*>(a)[i] + static_cast<const uint64_t*>(b)[i];
}

class ManyNodes : public testing::Test {
  protected:
    static void SetUpTestSuite() {
        const char* const text = getenv("HEDDLE_TEST_NODES");
        set_up(text ? atoi(text) : 256, kValues);
    }
    // values: the most of a node.
    static void set_up(int n, size_t values) {
        n_ = n;
        values_ = values;
        char error[256] = "";
        ASSERT_TRUE(base::read_settings(&base::settings, error, sizeof error)) << error;
        base::lifecycle = base::Lifecycle::kRunning;
        numbers_.clear();
        peers_.clear();
        numbers_.resize(static_cast<size_t>(n_) + 1);
        std::iota(numbers_.begin(), numbers_.end(), 0);
        peers_.resize(static_cast<size_t>(n_));
        for (int pe = 0; pe < n_; ++pe) make_node(pe);
    }
    static void TearDownTestSuite() { nodes.clear(); }

    // source of a node: (its number + 1) * (kPrime + index). dest begins at the heap's start, source behind it.
    static uint64_t value(int node, size_t index) { return (static_cast<uint64_t>(node) + 1) * (kPrime + index); }
    static size_t dest_values() { return std::max(static_cast<size_t>(n_), values_); }
    static uint64_t* dest(int node) {
        return reinterpret_cast<uint64_t*>(nodes[static_cast<size_t>(node)]->heap.data());
    }

    struct Most {
        uint64_t messages;  // of all nodes
        int sent;           // by a node
        int rounds;
        size_t bytes;      // sent by a node
        int together = 1;  // messages that a node sends before it reads
    };
    static void run(const char* name, Work work, const Most& most) {
        run(name, work);
        if (!HasFatalFailure())
            compare(name, most);
    }
    // Carries out a collective on all nodes.
    static void run(const char* name, Work work) {
        work_ = work;
        for (int pe = 0; pe < n_; ++pe) {
            Node& node = *nodes[static_cast<size_t>(pe)];
            std::fill_n(dest(pe), dest_values(), 0);
            for (size_t i = 0; i < dest_values(); ++i) dest(pe)[dest_values() + i] = value(pe, i);
            node.now_us = 0;
            node.round = node.sent = node.received = 0;
            node.bytes = node.longest = 0;
            while (node.helpers.size() + 1 < static_cast<size_t>(node.threads))
                node.helpers.push_back(std::make_unique<progress::Fiber>());
            for (intptr_t thread = 0; thread < node.threads; ++thread)
                ASSERT_TRUE(
                    fiber_of(node, thread)
                        .start([](void* number) { carry_out(static_cast<int>(reinterpret_cast<intptr_t>(number))); },
                               reinterpret_cast<void*>(thread), progress::arithmetic_modes()));
        }
        for (bool goes_on = true, moved = true; goes_on;) {
            ASSERT_TRUE(moved) << name << ": all nodes wait";
            goes_on = moved = false;
            for (const auto& node : nodes) {
                for (int thread = 0; thread < node->threads; ++thread) {
                    progress::Fiber& fiber = fiber_of(*node, thread);
                    if (fiber.is_over())
                        continue;
                    goes_on = true;
                    memory::symmetric = &node->symmetric;
                    if (fiber.is_ready()) {
                        moved = true;
                        fiber.resume();
                    }
                }
            }
            moved = moved || !goes_on;
        }
    }
    static progress::Fiber& fiber_of(Node& node, intptr_t thread) {
        return thread == 0 ? node.fiber : *node.helpers[static_cast<size_t>(thread) - 1];
    }

    static int log2() {
        int log = 0;
        while (1 << log < n_) ++log;
        return log;
    }
    static int log4() { return (log2() + 1) / 2; }
    // What leaders tell each other: values of so many bytes, with the size of each.
    static Most told(size_t bytes) {
        const size_t all = static_cast<size_t>(n_) * (bytes + sizeof(size_t));
        const int sent = 3 * log4() + static_cast<int>(all / kMaxControlBytes);
        return {static_cast<uint64_t>(sent) * static_cast<uint64_t>(n_), sent, log4(),
                all + static_cast<size_t>(sent) * kHeadBytes, 4};
    }
    static Most tree(int rounds, size_t bytes) {
        return {static_cast<uint64_t>(rounds / log2()) * static_cast<uint64_t>(n_ - 1), log2(), rounds,
                static_cast<size_t>(log2()) * (bytes + kHeadBytes)};
    }

    static constexpr size_t kHeadBytes = fabric::record::control_bytes(0);
    static inline int n_ = 0;
    static inline size_t values_ = kValues;

  private:
    static void make_node(int pe) {
        nodes.push_back(std::make_unique<Node>());
        Node& node = *nodes.back();
        node.heap.resize(2 * dest_values() * sizeof(uint64_t));
        peers_[static_cast<size_t>(pe)].heap = node.heap.data();
        node.symmetric.heap = {reinterpret_cast<uintptr_t>(node.heap.data()), node.heap.size()};
        node.symmetric.pe = pe;
        node.symmetric.n_pes = n_;
        node.symmetric.has_network = true;
        node.symmetric.peers = peers_.data();
        int* const all = numbers_.data();
        node.span.n_nodes = n_;
        node.span.node = pe;
        node.span.node_of = node.span.members = node.span.begins = all;
        node.span.id = 77;
        node.team.alive = true;
        node.team.handle = reinterpret_cast<shmem_team_t>(&node.team);
        node.team.members = {0, 1, n_};
        node.team.rank = pe;
        node.team.span = &node.span;
        node.segment->clear();
        node.team.state.segment = node.segment->segment();
        node.team.state.members = {pe, 1, 1};
    }
    static void carry_out(int thread) {
        Node& node = node_here();
        const base::Call call = {"many_nodes", nullptr};
        CollectiveCall coll(call, {node.team.handle, thread, node.threads}, {});
        work_(coll, dest(node.symmetric.pe), dest(node.symmetric.pe) + dest_values());
    }
    static void compare(const char* name, const Most& most) {
        uint64_t messages = 0, received = 0;
        int sent = 0, rounds = 0;
        size_t bytes = 0, longest = 0;
        double time_us = 0;
        for (const auto& node : nodes) {
            messages += static_cast<uint64_t>(node->sent);
            received += static_cast<uint64_t>(node->received);
            sent = std::max(sent, node->sent);
            rounds = std::max(rounds, node->round);
            bytes = std::max(bytes, node->bytes);
            longest = std::max(longest, node->longest);
            time_us = std::max(time_us, node->now_us);
        }
        const double message_us = kOverheadUs + static_cast<double>(longest) * kByteUs;
        const double most_us = most.rounds * (kLatencyUs + 2 * most.together * message_us);
        printf(
            "%-10s %5d nodes: %8lu messages (most %8lu), of a node %4d (%4d) with %6zu bytes (%6zu), %2d rounds "
            "(%2d), %6.1f us (%6.1f)\n",
            name, n_, static_cast<unsigned long>(messages), static_cast<unsigned long>(most.messages), sent, most.sent,
            bytes, most.bytes, rounds, most.rounds, time_us, most_us);
        EXPECT_EQ(messages, received) << name;
        EXPECT_LE(messages, most.messages) << name;
        EXPECT_LE(sent, most.sent) << name;
        EXPECT_LE(rounds, most.rounds) << name;
        EXPECT_LE(bytes, most.bytes) << name;
        EXPECT_LE(time_us, most_us) << name;
    }

    static inline Work work_ = nullptr;
    static inline std::vector<int> numbers_;  // 0 to n: with a member each, nodes are members, in order
    static inline std::vector<heddle_peer> peers_;
};

TEST_F(ManyNodes, Barrier) {
    const auto n = static_cast<uint64_t>(n_);
    run("barrier", [](CollectiveCall& coll, uint64_t*, const uint64_t*) { internode_barrier(coll); },
        {n * static_cast<uint64_t>(log2()), log2(), log2(), static_cast<size_t>(log2()) * (kHeadBytes + 16)});
}

TEST_F(ManyNodes, Broadcast) {
    run(
        "broadcast",
        [](CollectiveCall& coll, uint64_t* to, const uint64_t* from) {
            internode::broadcast(coll, to, from, kValues * sizeof *to, 0, true);
        },
        tree(log2(), kValues * sizeof(uint64_t) + sizeof(size_t)));
    for (int node = 0; node < n_; ++node)
        for (size_t i = 0; i < kValues; ++i) ASSERT_EQ(dest(node)[i], value(0, i)) << node;
}

TEST_F(ManyNodes, ReductionOfAWord) {
    run(
        "reduce 8 B",
        [](CollectiveCall& coll, uint64_t* to, const uint64_t* from) {
            internode::reduce(coll, sum, Kind::kU64, to, from, 1, sizeof *to);
        },
        told(sizeof(uint64_t)));
    const auto n = static_cast<uint64_t>(n_);
    for (int node = 0; node < n_; ++node) ASSERT_EQ(dest(node)[0], n * (n + 1) / 2 * kPrime) << node;
}

TEST_F(ManyNodes, ReductionAlongATree) {
    run(
        "reduce 1 K",
        [](CollectiveCall& coll, uint64_t* to, const uint64_t* from) {
            internode::reduce(coll, sum, Kind::kU64, to, from, kValues, sizeof *to);
        },
        tree(2 * log2(), kValues * sizeof(uint64_t)));
    const auto n = static_cast<uint64_t>(n_);
    for (int node = 0; node < n_; ++node)
        for (size_t i = 0; i < kValues; ++i) ASSERT_EQ(dest(node)[i], n * (n + 1) / 2 * (kPrime + i)) << node;
}

TEST_F(ManyNodes, ScanAlongATree) {
    run(
        "inscan 1 K",
        [](CollectiveCall& coll, uint64_t* to, const uint64_t* from) {
            internode::scan(coll, sum, Kind::kU64, true, to, from, kValues, sizeof *to);
        },
        tree(2 * log2(), kValues * sizeof(uint64_t)));
    for (int node = 0; node < n_; ++node) {
        const uint64_t n = static_cast<uint64_t>(node) + 1;
        for (size_t i = 0; i < kValues; ++i) ASSERT_EQ(dest(node)[i], n * (n + 1) / 2 * (kPrime + i)) << node;
    }
}

TEST_F(ManyNodes, Fcollect) {
    run(
        "fcollect",
        [](CollectiveCall& coll, uint64_t* to, const uint64_t* from) {
            internode::collect(coll, to, from, sizeof *to, true);
        },
        told(sizeof(uint64_t)));
    for (int node = 0; node < n_; ++node)
        for (int from = 0; from < n_; ++from) ASSERT_EQ(dest(node)[from], value(from, 0)) << node;
}

// A message for each pair of nodes, which no more nodes are for.
TEST_F(ManyNodes, Alltoall) {
    if (n_ > 1024)
        GTEST_SKIP() << "n (n - 1) messages";
    const auto n = static_cast<uint64_t>(n_);
    run("alltoall",
        [](CollectiveCall& coll, uint64_t* to, const uint64_t* from) {
            internode::alltoall(coll, {to, from, 1, sizeof *to, sizeof *to, sizeof *to});
        },
        {n * (n - 1), n_ - 1, 1, static_cast<size_t>(n_) * (kHeadBytes + 16), n_});
    for (int node = 0; node < n_; ++node)
        for (int from = 0; from < n_; ++from)
            ASSERT_EQ(dest(node)[from], value(from, static_cast<size_t>(node))) << node;
}

// Three nodes, whose numbers of threads are every choice of some, and long data. Messages are as many as with one thread
// each. That all nodes wait is found in one order of the steps: each waits for messages by name, and none to send.
class Threads : public ManyNodes {
  protected:
    static constexpr int kNodes = 3, kMostThreads = 20;
    static inline std::unique_ptr<progress::WaitPolicy> policy_;
    static inline uint64_t cpus_[progress::Engine::kMaxCpuWords];
    static inline std::unique_ptr<progress::Engine> engine_;
    static inline std::vector<std::unique_ptr<team::Helper>> helpers_;
    static constexpr size_t kPieces = 75, kInPiece = kMaxControlBytes / sizeof(uint64_t),
                            kLong = kPieces * kInPiece - 5;
    // The node of each member, and the members by node. A sum passes from node to node in another order than its result,
    // as it does where members of several nodes alternate.
    static inline int order_[kNodes] = {0, 2, 1};
    static constexpr uint64_t kMostWaiting = 2 * 32 + 2;  // pieces of the sum and of the result
    static constexpr int kCaughtUp = 2 * kNodes;          // messages more of each 256th step (InternodeStep::catch_up)

    static void SetUpTestSuite() {
        set_up(kNodes, kLong);
        base::settings.collective_threads = base::CollectiveThreads::kAll;
        for (const auto& node : nodes) {
            node->span.node_of = node->span.members = order_;
            node->span.node = order_[node->team.rank];
        }
        // As with what threads have posted together: each share has a helper, whose streams are not used here.
        policy_ = std::make_unique<progress::WaitPolicy>();
        progress::wait_policy = policy_.get();
        engine_ = std::make_unique<progress::Engine>(*policy_, base::AsyncCopy::kNever, cpus_,
                                                     progress::Engine::kMaxCpuWords);
        for (const auto& node : nodes)
            for (int share = 1; share < kMostThreads; ++share) {
                helpers_.push_back(std::make_unique<team::Helper>(*engine_));
                helpers_.back()->next = node->team.helpers;
                node->team.helpers = helpers_.back().get();
            }
    }
    static void TearDownTestSuite() {
        ManyNodes::TearDownTestSuite();
        helpers_.clear();
        engine_.reset();
        progress::wait_policy = nullptr;
        policy_.reset();
        base::settings = {};
    }
    // messages(threads): of all nodes, whose PEs have so many threads.
    template <class Messages, class Right>
    static void run_all(const char* name, Work work, Messages messages, Right right) {
        constexpr int kThreads[] = {1, 2, 3, 5, 16, kMostThreads};
        for (const int first : kThreads)
            for (const int second : kThreads)
                for (const int third : kThreads) {
                    const int threads[] = {first, second, third};
                    for (int node = 0; node < kNodes; ++node) nodes[static_cast<size_t>(node)]->threads = threads[node];
                    const std::string all = std::string(name) + " " + std::to_string(first) + "," +
                                            std::to_string(second) + "," + std::to_string(third);
                    run(all.c_str(), work);
                    if (HasFatalFailure())
                        return;
                    int sent = 0, received = 0;
                    for (int node = 0; node < kNodes; ++node) {
                        sent += nodes[static_cast<size_t>(node)]->sent;
                        received += nodes[static_cast<size_t>(node)]->received;
                        for (size_t i = 0; i < kLong; ++i) ASSERT_EQ(dest(node)[i], right(node, i)) << all << node;
                        ASSERT_LE(nodes[static_cast<size_t>(node)]->control_inbox.most_waiting(), kMostWaiting) << all;
                    }
                    ASSERT_EQ(sent, received) << all;
                    if (sent != messages(threads) + kCaughtUp) {
                        ASSERT_EQ(sent, messages(threads)) << all;
                    }
                }
    }
    static uint64_t sum_to(int node, size_t index) {
        const uint64_t n = static_cast<uint64_t>(node) + 1;
        return n * (n + 1) / 2 * (kPrime + index);
    }
};

// Besides the pieces and the results, a message of each node but the first says that it is here.
TEST_F(Threads, ReduceLongData) {
    constexpr int kReduced = (2 * kPieces + 1) * (kNodes - 1);
    run_all(
        "reduce",
        [](CollectiveCall& coll, uint64_t* to, const uint64_t* from) {
            internode::reduce(coll, sum, Kind::kU64, to, from, kLong, sizeof *to);
        },
        [](const int*) { return kReduced; }, [](int, size_t i) { return sum_to(kNodes - 1, i); });
}

// A node tells the one before of each 8th piece, up to the 25th before the end.
TEST_F(Threads, ScanLongData) {
    constexpr int kScanned = (kPieces + (kPieces - 25) / 8) * (kNodes - 1);
    run_all(
        "inscan",
        [](CollectiveCall& coll, uint64_t* to, const uint64_t* from) {
            internode::scan(coll, sum, Kind::kU64, true, to, from, kLong, sizeof *to);
        },
        [](const int*) { return kScanned; }, sum_to);
}

// Pieces along the nodes; where they are fewer than a node's threads, each thread sends its part of each. PE 0 and then
// PE 2, on node 1, send.
TEST_F(Threads, BroadcastLongData) {
    constexpr int kWhole = kLong * sizeof(uint64_t) / (256 * 1024);  // and a shorter one
    run_all(
        "broadcast",
        [](CollectiveCall& coll, uint64_t* to, const uint64_t* from) {
            internode::broadcast(coll, to, from, kLong * sizeof *to, 0, true);
        },
        [](const int* threads) {
            const auto sent = [&](int pe) { return (kWhole + 1) * (threads[pe] <= kWhole ? 1 : threads[pe]); };
            return sent(0) + sent(2);
        },
        [](int, size_t i) { return value(0, i); });
}

}  // namespace
}  // namespace heddle::collective
