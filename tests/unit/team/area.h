// The shared memory of a job's rooms, without a job: for the tests of this folder. The PEs are threads, or one thread
// plays them in turn.
#pragma once

#include "base/settings.h"
#include "os/memfd.h"
#include "progress/wait_policy.h"
#include "team/rooms.h"

#include <gtest/gtest.h>
#include <functional>
#include <ostream>
#include <thread>
#include <vector>

namespace heddle::team {

class Area {
  public:
    explicit Area(int n_pes) : n_pes_(n_pes), bytes_(os::round_up(rooms_bytes(n_pes), os::page_bytes())) {
        shared_ = static_cast<char*>(os::reserve_zeroes(bytes_));
        if (!shared_ || !os::make_writable(shared_, bytes_))
            ADD_FAILURE() << "no memory";
        policy_.spin_ns = 0;
        policy_.yield_ns = 30000;  // short, so that waits sleep, too
        play(0);
    }
    ~Area() {
        os::unmap(shared_, bytes_);
        rooms = {};
        progress::wait_policy = nullptr;
        base::settings = {};
    }
    Area(const Area&) = delete;
    Area& operator=(const Area&) = delete;

    // The calling thread is this PE from now on.
    void play(int pe, bool crowded = false) {
        start_rooms(shared_, pe, n_pes_, crowded);
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

// The place of a member in a room. Steps go on behind `count`, to which the gates are open then.
inline Place place_in(int room, const Members& members, int rank, Way way, uint32_t count = 0) {
    Place place;
    place.room = room_at(room);
    place.members = members;
    place.rank = rank;
    place.way = way;
    place.count = place.all_done = count;
    return place;
}

inline void PrintTo(Way way, std::ostream* out) {
    constexpr const char* kWords[] = {"auto", "central", "dissemination", "flat"};
    *out << kWords[static_cast<int>(way)];
}

}  // namespace heddle::team
