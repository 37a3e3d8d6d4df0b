// How the PEs of a job find each other before they share memory: who am I, how many are we, barrier, allgather, end the
// job. Ways: the launcher's page (oshrun), alone (no launcher), a thread of a test process. One thread per PE calls.
#pragma once

#include "base/pe_local.h"
#include "bootstrap/job_page.h"

#include <array>
#include <cstddef>

namespace heddle::bootstrap {

struct Job {
    int pe = 0;
    int n_pes = 0;       // 0: not joined
    int memory_fd = -1;  // the node's memory; begins with the job page
    JobPage* page = nullptr;
    bool has_launcher = false;
    int node = 0;  // of n_nodes; load and store reach the PEs of one
    int n_nodes = 1;
    const int* nodes = nullptr;  // of each PE; null: all are on one
    uint64_t token = 0;          // of the job: what comes over the network without it is refused
    bool as_thread = false;      // PEs are threads of this process and share every mapping (tests)
    uint32_t barriers = 0;       // passed so far

    PeRecord& record(int of_pe) const { return page->records()[of_pe]; }
    int node_of(int of_pe) const { return nodes ? nodes[of_pe] : 0; }
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

// Says how this PE is reached over the network; after a barrier any PE may ask for it. False when the card is too
// large.
bool publish_card(const void* card, size_t bytes);
// The card of a PE: its size, or 0 with the reason in error. Any thread.
size_t card_of(int pe, char* card, char* error, size_t error_bytes);

// Asks the launcher to end the job. The first request of a job wins.
void request_exit(ExitRequest request, int status);

// Shows where this PE waits; see PeRecord.
void show_wait(const char* function, const void* address);

}  // namespace heddle::bootstrap
