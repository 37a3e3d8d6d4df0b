// Wait graph: which PEs of a job page wait for which, by what they publish (bootstrap/pe_status.h). A PE that waits for
// a lock waits for the holder. A PE in a step of a collective waits for those that have not come to it. Threads: any.
#pragma once

#include "bootstrap/job_page.h"

#include <string>
#include <vector>

namespace heddle::bootstrap {

// The waits of a PE's threads, the longest first.
std::vector<WaitState> waits_of(const JobPage& page, int slot);

// The number of a PE in the world; its slot while it has not joined.
int pe_of(const JobPage& page, int slot);

// Lines that name cycles of PEs that wait for each other, and two PEs in different collectives at one step of a team.
// Further lines name the PEs that wait for others, as far as no cycle has told.
std::vector<std::string> describe_relations(const JobPage& page, int n_slots);

// A line for each PE of another node that owes acknowledgements or replies to PEs of the page.
std::vector<std::string> describe_unacked(const JobPage& page, int n_slots);

// "0-1, 3" of sorted numbers.
std::string describe_numbers(const std::vector<int>& numbers);

}  // namespace heddle::bootstrap
