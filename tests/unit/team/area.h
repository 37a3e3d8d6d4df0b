// The shared memory of a job's team segments, without a job: for the tests of this folder. The PEs are threads, or one
// thread plays them in turn.
#pragma once

#include "base/settings.h"
#include "os/memfd.h"
#include "progress/wait_policy.h"
#include "team/segment_table.h"

#include <gtest/gtest.h>
#include <functional>
#include <ostream>
#include <thread>
#include <vector>

namespace heddle::team {

class Area {
  public:
    explicit Area(int n_pes) : n_pes_(n_pes), bytes_(os::round_up(team_segments_bytes(n_pes), os::page_bytes())) {
        shared_ = static_cast<char*>(os::reserve_zeroes(bytes_));
        if (!shared_ || !os::make_writable(shared_, bytes_))
            ADD_FAILURE() << "no memory";
        policy_.spin_ns = 0;
        policy_.yield_ns = 30000;  // short, so that waits sleep, too
        play(0);
    }
    ~Area() {
        os::unmap(shared_, bytes_);
        team_segments = {};
        progress::wait_policy = nullptr;
        base::settings = {};
    }
    Area(const Area&) = delete;
    Area& operator=(const Area&) = delete;

    // The calling thread is this PE from now on.
    void play(int pe, bool oversubscribed = false) {
        start_team_segments(shared_, pe, n_pes_, oversubscribed);
        progress::wait_policy = &policy_;
    }

    // Runs body(pe) on a thread for each PE.
    void run(const std::function<void(int pe)>& body) {
        std::vector<std::thread> pes;
        for (int pe = 0; pe < n_pes_; ++pe)
            pes.emplace_back([&, pe] {
                play(pe);
                body(pe);
            });
        for (std::thread& pe : pes) pe.join();
    }

  private:
    int n_pes_;
    size_t bytes_;
    char* shared_;
    progress::WaitPolicy policy_;
};

constexpr Call kTestCall = {"test", nullptr};

// The place of a member in a team segment. Steps go on behind `count`, to which the event counts are open then.
inline MemberState place_in(int segment, const Members& members, int rank, BarrierAlgorithm barrier_algorithm,
                            uint32_t count = 0) {
    MemberState state;
    state.segment = segment_at(segment);
    state.members = members;
    state.rank = rank;
    state.barrier_algorithm = barrier_algorithm;
    state.count = state.all_done = count;
    return state;
}

}  // namespace heddle::team

namespace heddle::base {

inline void PrintTo(BarrierAlgorithm barrier_algorithm, std::ostream* out) {
    *out << word_of(barrier_algorithm);
}

}  // namespace heddle::base
