// Deadline of a job on several hosts (oshrun --timeout): each PE says where it is just before the launcher that oshrun
// has asked to start the PEs ends the job. oshrun itself cannot read the job pages of other hosts. Threads: init's
// calls; one of the library's own sleeps until the deadline, in a job with a deadline alone.
#pragma once

#include <cstdint>

namespace heddle::bootstrap {

// What oshrun tells of the deadline (kEnvDeadline).
struct Deadline {
    uint64_t timeout_ns = 0;  // from oshrun's start; 0: no deadline
    uint64_t unix_ns = 0;     // its end, by the clock of oshrun's host
};
Deadline read_deadline(const char* text);

// Time left to a process of that age. The clock of its host decides, which may be wrong: the process has started after
// oshrun, and at most kMostStartNs after it.
constexpr uint64_t kMostStartNs = 10'000'000'000;
uint64_t time_left(const Deadline& deadline, uint64_t unix_now_ns, uint64_t age_ns);

// Starts the thread where the environment has a deadline, and removes that: programs that a PE starts have none.
void watch_deadline(int pe);
// This PE has joined: from now on its job page tells where it is. Otherwise it waits in init.
void tell_place();

}  // namespace heddle::bootstrap
