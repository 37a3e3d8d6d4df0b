// A PE without a job, for the tests of the engine and of sequences: a policy, a wake-up, an engine, and threads that
// belong to it.
#pragma once

#include "os/clock.h"
#include "os/topology.h"
#include "progress/engine.h"
#include "unit/becomes.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <atomic>
#include <cstdint>
#include <memory>
#include <ostream>
#include <thread>
#include <vector>

namespace heddle::progress {

constexpr uint64_t kMs = 1000000;

class LonePe {
  public:
    LonePe() : engine(policy, AsyncCopy::kAuto, cpus, Engine::kMaxCpuWords) {
        os::usable_cpus(cpus, Engine::kMaxCpuWords);
        policy.node_threads = &threads;
        policy.node_sleepers = &sleepers;
        policy.node_cores = policy.own_cores = 1000;
        policy.poll = [] { return progress::engine->drive(); };
        engine.set_wakeup(wakeup.event_count);
        pe_of_thread = []() -> void* { return mine; };
        become_thread_of = [](void* pe) {
            static_cast<LonePe*>(pe)->adopt();
            static_cast<LonePe*>(pe)->background = syscall(SYS_gettid);
        };
    }
    ~LonePe() { pe_of_thread = nullptr, become_thread_of = nullptr; }
    LonePe(const LonePe&) = delete;
    LonePe& operator=(const LonePe&) = delete;

    // A thread of this PE.
    template <class Body>
    std::thread thread(Body body) {
        return std::thread([this, body] {
            adopt();
            body();
        });
    }
    // Runs the test on one, because a thread is counted in the first policy that it waits under; then stops the engine.
    template <class Body>
    void run(Body body) {
        thread([&] {
            body();
            engine.stop("test");
        }).join();
        EXPECT_EQ(policy.posted, 0u);
        for (const std::atomic<uint64_t>& watched : wakeup.watched) EXPECT_EQ(watched, 0u);
    }

    Sequence& make_sequence() {
        sequences_.push_back(std::make_unique<Sequence>(engine));
        engine.add(*sequences_.back());
        return *sequences_.back();
    }

    std::atomic<uint32_t> threads{0}, sleepers{0};
    WaitPolicy policy;
    sync::PeWakeup wakeup = {};
    std::atomic<long> background{0};  // the system's number of the engine's thread, once there is one
    uint64_t cpus[Engine::kMaxCpuWords] = {};
    Engine engine;

  private:
    void adopt() {
        mine = this;
        wait_policy = &policy;
        progress::engine = &engine;
        sync::wakeups = {&wakeup, 1, &wakeup};
    }

    static inline thread_local LonePe* mine = nullptr;
    std::vector<std::unique_ptr<Sequence>> sequences_;
};

}  // namespace heddle::progress

namespace heddle::base {

inline void PrintTo(Progress progress, std::ostream* out) {
    *out << word_of(progress);
}

}  // namespace heddle::base
