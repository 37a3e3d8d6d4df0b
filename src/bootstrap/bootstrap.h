// Bootstrap: how the PEs of a job find each other before they share memory: numbers, barrier, allgather, end of the
// job. A PE is started by oshrun (with the job page), by another launcher (launched.h), alone, or as a thread of a test
// process. Threads: one per PE calls, unless a function says otherwise.
//
// The PEs that share a job page, and with it memory, have numbers 0, 1, ... there: their slots. Records, heaps and
// member slots are indexed by slot; everything else names a PE by its number in the world. With oshrun both numbers are
// equal.
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
    int memory_fd = -1;  // the node's memory, which begins with the job page; used by init alone
    os::FileId memory_file;
    JobPage* page = nullptr;
    int slot = 0;  // this PE's, of the n_slots PEs that share the page
    int n_slots = 0;
    const int* slots = nullptr;    // by PE, -1 for a PE without the page; null: a PE's slot is its number
    const int* leaders = nullptr;  // by PE: the first PE that shares its page; null: all share one
    uint32_t cores = 1;            // that the page's PEs may use
    bool has_launcher = false;
    const LauncherApi* launcher = nullptr;  // set when the launcher is not oshrun
    bool get_waits = false;                 // LauncherJob's
    uint32_t launcher_threads = 0;          // threads of this process for the launcher: its library's, or a lifeline's
    int node = 0;                           // of n_nodes; a node's PEs reach each other's memory by load and store
    int n_nodes = 1;
    const int* nodes = nullptr;  // by PE; null: all are on one node
    int page_node = 0;           // the node's number among the pretended nodes of the page
    int n_page_nodes = 1;
    uint64_t token = 0;                // of the job; messages from the network without it are refused
    bool as_thread = false;            // PEs are threads of this process and share every mapping (tests)
    uint32_t barriers = 0;             // passed so far
    int launcher_pid = 0;              // of oshrun; 0: another launcher, or none
    bool is_launcher_visible = false;  // in /proc, under that number
    int lifeline = -1;                 // the end of a pipe that closes with oshrun; -1: another launcher, or none
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

// For an error that all PEs find before join, such as a malformed setting. Returns at once in PE 0, and in the others
// after PE 0 has had time to report it and to end the job: the message then appears once.
void let_first_pe_tell();

// Fills `job`, once per process; a second call does nothing. False on failure, with the reason in error.
bool join(char* error, size_t error_bytes);

// In a forked child of a PE: makes the job page private, and lets the child die with oshrun. If the program has closed
// or reused the descriptors, the page becomes read-only, or the child survives oshrun.
void begin_child();

using Post = std::array<uint64_t, PeRecord::kPostWords>;

// A barrier of the PEs of the page: all see what each wrote before.
void barrier(const char* function);
// A barrier of all PEs of the job. PEs of several pages need the launcher, which takes milliseconds.
void barrier_of_world(const char* function);

// Gives `mine` to the PEs of the page. Afterwards posted(slot) is what each PE gave, until the next exchange.
void exchange(const char* function, const Post& mine);
Post posted(int slot);

constexpr size_t kMaxAddressBlobBytes = 4096;  // on the page: PeAddress::kBytes
// Publishes this PE's address blob; after a barrier of the world any PE may ask for it. False, with the reason in
// error, when the blob is too large.
bool publish_address_blob(const void* address_blob, size_t bytes, char* error, size_t error_bytes);
// Copies the address blob of a PE, at most kMaxAddressBlobBytes. Returns its size, or 0 with the reason in error. Any
// thread.
size_t address_blob_of(int pe, char* address_blob, char* error, size_t error_bytes);

// Asks the launcher to end the job; the first request of a job wins.
void request_exit(ExitRequest request, int status);
// True when the job is to end: a PE has asked for it, or the launcher has its reasons.
bool is_ending();
// Tells a launcher other than oshrun that this process ends well, if the PE has finalized. May be called repeatedly.
void part_from_launcher();
// Makes a launcher other than oshrun end all PEs, including this one. Any thread.
void end_launched_job(int status);

// Ends the job that this PE could not join, behind the message that says why. PMI alone needs it: hydra waits for the
// processes on other hosts that have not called shmem_init.
void end_unjoined_job();

// Publishes where this PE waits; see PeRecord.
void show_wait(const char* function, const void* address);

}  // namespace heddle::bootstrap
