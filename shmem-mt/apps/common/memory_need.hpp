// Refuses a problem that does not fit into the machine before its memory is asked for: the kernel hands out more memory
// than there is, and ends programs that then use it without a message.
#pragma once

#include <unistd.h>

#include <string>

#include "programs/common/job.hpp"

namespace shmem_mt {

// Fails where the PEs of this machine together need more than it has. `option` is what made the problem so large.
// Collective.
inline void check_memory(Job& job, double bytes, const char* option) {
    constexpr double kGiB = 1 << 30;
    Report mine;
    mine.seconds = bytes;
    const Agreed all = job.agree(mine);
    const double need = job.one_host() ? all.mean_seconds * job.n_pes() : bytes;
    const double have = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
    if (need <= have)
        return;
    char message[200];
    std::snprintf(message, sizeof message, "%s %s needs %.1f GiB of memory here, and the machine has %.1f: choose less",
                  option, job.options().size.c_str(), need / kGiB, have / kGiB);
    fail(message);
}

}  // namespace shmem_mt
