// How the PEs of a job find each other before they share memory: who am I, how many are we, barrier, allgather, end the
// job. Ways: the launcher's page (oshrun), another launcher (launched.h), alone (no launcher), a thread of a test
// process. One thread per PE calls.
//
// The PEs that share a job page, and with it memory, number themselves 0, 1, ... there: their slots. Records, heaps and
// rooms lie by slot; all else names a PE by its number in the world. With oshrun both are the same.
#pragma once

#include "base/invariant.h"
#include "base/pe_local.h"
#include "bootstrap/job_page.h"
#include "bootstrap/launcher_api.h"
#include "os/mappings.h"

#include <array>
#include <cstddef>

namespace heddle::bootstrap {

struct Job {
    int pe = 0;
    int n_pes = 0;       // 0: not joined
    int memory_fd = -1;  // the node's memory; begins with the job page. Needed by init alone
    os::FileId memory_file;
    JobPage* page = nullptr;
    int slot = 0;  // of n_slots, those of the PEs that share the page
    int n_slots = 0;
    const int* slots = nullptr;    // of each PE, -1 for those without the page; null: a PE's slot is its number
    const int* leaders = nullptr;  // of each PE, the first that shares its page; null: all share one
    uint32_t cores = 1;            // that the PEs of the page may use
    bool has_launcher = false;
    const LauncherApi* launcher = nullptr;  // another one than oshrun
    uint32_t launcher_threads = 0;          // of this process
    int node = 0;                           // of n_nodes; load and store reach the PEs of one
    int n_nodes = 1;
    const int* nodes = nullptr;  // of each PE; null: all are on one
    int page_node = 0;           // the node's number among those pretended on the page
    int n_page_nodes = 1;
    uint64_t token = 0;      // of the job: what comes over the network without it is refused
    bool as_thread = false;  // PEs are threads of this process and share every mapping (tests)
    uint32_t barriers = 0;   // passed so far
    int launcher_pid = 0;    // oshrun's; 0: another launcher, or none
    int lifeline = -1;       // the end of a pipe that closes with oshrun; -1: none, or another launcher
    os::FileId lifeline_file;

    PeRecord& record(int of_slot) const {
        HEDDLE_INVARIANT(page && of_slot >= 0 && of_slot < static_cast<int>(page->n_pes));
        return page->records()[of_slot];
    }
    PeRecord& own_record() const { return record(slot); }
    int node_of(int of_pe) const { return nodes ? nodes[of_pe] : 0; }
    int slot_of(int of_pe) const { return slots ? slots[of_pe] : of_pe; }
};

extern HEDDLE_PE_LOCAL Job job;

// Ahead of join, in a PE that is about to fail for what all PEs were given: returns at once in PE 0, in the others when
// that has had the time to say it and to end the job, so that it is said once.
void let_first_pe_tell();

// Fills `job`, once per process; a second call does nothing. False on failure, with the reason in error.
bool join(char* error, size_t error_bytes);

// In a forked child of a PE: what it writes to the job's page is its own, and it dies with oshrun as its parent does.
// The program may have closed the descriptors, and opened others under their numbers: then it only cannot write, and
// lives.
void begin_child();

using Post = std::array<uint64_t, PeRecord::kPostWords>;

// Waits for the PEs of the page; all that they wrote before is seen after.
void barrier(const char* function);
// Waits for all PEs of the job. Where they are on several pages the launcher is asked, which takes milliseconds.
void barrier_of_world(const char* function);

// Shows `mine` to the PEs of the page; after it, posted(slot) is what each gave, until the next exchange.
void exchange(const char* function, const Post& mine);
Post posted(int slot);

constexpr size_t kMaxAddressBlobBytes = 4096;  // on the page PeAddress::kBytes
// Says how this PE is reached over the network; behind the world's barrier any PE may ask for it. False with the reason
// in error when the card is too large.
bool publish_address_blob(const void* address_blob, size_t bytes, char* error, size_t error_bytes);
// The card of a PE, for which there is room for the largest: its size, or 0 with the reason in error. Any thread.
size_t address_blob_of(int pe, char* address_blob, char* error, size_t error_bytes);

// Asks the launcher to end the job. The first request of a job wins.
void request_exit(ExitRequest request, int status);
// True when the job ends: somebody has asked for it, or the launcher has other reasons.
bool is_ending();
// The process ends: where another launcher than oshrun runs the job, a PE that has finalized needs it no more, and ends
// well. Repeatable.
void part_from_launcher();
// Where another launcher than oshrun runs the job, makes it end all PEs, this one among them. Any thread.
void end_launched_job(int status);

// Shows where this PE waits; see PeRecord.
void show_wait(const char* function, const void* address);
// The function in which this PE shows that it waits, as another thread of it sees it; empty when it does not.
WaitName own_wait();

}  // namespace heddle::bootstrap
