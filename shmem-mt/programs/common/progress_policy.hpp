// Which policy makes progress while a program computes or waits (shmemx.h). "auto" is what a library does by itself, so
// every library has it; "polled" is "manual" with polls that the program places.
#pragma once

#include <string>

#include "programs/common/binding.hpp"
#include "programs/common/job.hpp"
#include "programs/common/shmemx.hpp"

namespace shmem_mt {

constexpr const char* kAutoPolicy = "auto";
constexpr const char* kPolledPolicy = "polled";
constexpr const char* kMonitorPolicy = "thread:monitor";
constexpr const char* kNoProgress = "the library has no progress policies and non-blocking collectives (shmemx.h)";

// From here on, on this PE. False when the library or the machine cannot do it.
inline bool set_policy(const std::string& policy) {
    const Unbound unbound;  // for the threads that the library may make
#if SHMEM_MT_HAVE_PROGRESS
    return shmemx_progress_policy(policy == kPolledPolicy ? "manual" : policy.c_str()) == 0;
#else
    return policy == kAutoPolicy;
#endif
}

// Empty, or the reason why not all PEs can have that policy; leaves it set where it is there. Collective.
inline std::string why_no_policy(Job& job, const std::string& policy) {
    if (!SHMEM_MT_HAVE_PROGRESS && policy != kAutoPolicy)
        return kNoProgress;
    Report mine;
    mine.ok = set_policy(policy);
    return job.agree(mine).ok ? "" : "shmemx_progress_policy says that this machine cannot";
}

// What the library's thread for the network does between two polls under that policy, which stays set: "epoll", an
// instruction that watches a line, "spin" or "none". Empty where the library does not say.
inline std::string network_thread([[maybe_unused]] const std::string& policy) {
#if SHMEM_MT_HAVE_PROGRESS_NETWORK
    set_policy(policy);
    return shmemx_progress_network();
#else
    return "";
#endif
}

inline void poll_progress() {
#if SHMEM_MT_HAVE_PROGRESS
    shmemx_progress();
#endif
}

}  // namespace shmem_mt
