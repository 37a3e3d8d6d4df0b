// The output of SHMEM_VERSION and SHMEM_INFO at start-up, and of HEDDLE_STATS at the end.
#pragma once

#include "base/counters.h"
#include "os/memfd.h"
#include "profiling/counts.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace heddle::runtime {

void report_start();

// The counters of a job. Of a fixed size, so that PEs pass them on as they are.
struct JobCounters {
    static constexpr int kFewPes = 32;  // whose values the table has each

    struct Row {
        profiling::Extremes of_all;
        std::array<uint64_t, kFewPes> each;  // zero but in jobs of few PEs
    };
    std::array<Row, std::size(base::kCounterRows)> rows;

    void add(const JobCounters& other);
};

// Of each PE's heap, behind the bytes of its profile, where the PEs leave their counters for each other.
constexpr size_t kCountersBytes = os::round_up(sizeof(JobCounters), 64);

// If HEDDLE_STATS asks for it, PE 0 prints a table of the counters of all PEs: sum, least and most with their PEs, and
// for few PEs those of each. To be called by all PEs behind the last meeting of all, while they can still be reached.
void report_counters(const char* function);

}  // namespace heddle::runtime
