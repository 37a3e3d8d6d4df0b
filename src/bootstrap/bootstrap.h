// How the PEs of a job find each other before they share memory: who am I, how many are we, barrier, allgather, end the
// job. Ways: the launcher's page (oshrun), alone (no launcher), a thread of a test process. One thread per PE calls.
#pragma once

#include "base/pe_local.h"
#include "bootstrap/job_page.h"

#include <array>

namespace heddle::bootstrap {

struct Job {
    int pe = 0;
    int n_pes = 0;       // 0: not joined
    int memory_fd = -1;  // the node's memory; begins with the job page
    JobPage* page = nullptr;
    bool has_launcher = false;
    bool as_thread = false;  // PEs are threads of this process and share every mapping (tests)
    uint32_t barriers = 0;   // passed so far

    PeRecord& record(int of_pe) const { return page->records()[of_pe]; }
};

extern HEDDLE_PE_LOCAL Job job;

// Fills `job`, once per process; a second call does nothing. False on failure, with the reason in error.
bool join(char* error, size_t error_bytes);

using Post = std::array<uint64_t, PeRecord::kPostWords>;

// Waits for all PEs; all that they wrote before is seen after.
void barrier(const char* function);

// Shows `mine` to all PEs; after it, posted(pe) is what each gave, until the next exchange.
void exchange(const char* function, const Post& mine);
Post posted(int pe);

// Asks the launcher to end the job. The first request of a job wins.
void request_exit(ExitRequest request, int status);

// Shows where this PE waits; see PeRecord.
void show_wait(const char* function, const void* address);

}  // namespace heddle::bootstrap
