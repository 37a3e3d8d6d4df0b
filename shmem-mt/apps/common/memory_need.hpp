// Refuses a problem that does not fit into the machine before its memory is asked for: the kernel hands out more memory
// than there is, and ends programs that then use it without a message.
#pragma once

#include <unistd.h>

#include <string>

#include "programs/common/job.hpp"

namespace shmem_mt {

// Fails where the PEs of one host together need more than this one has. `option` is what made the problem so large.
// Collective.
inline void check_memory(Job& job, double bytes, const char* option) {
    constexpr double kGiB = 1 << 30;
    const double need = job.most_of_a_host(bytes);
    const double have = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
    if (need <= have)
        return;
    char message[200];
    std::snprintf(message, sizeof message, "%s %s needs %.1f GiB of memory here, and the machine has %.1f: choose less",
                  option, job.options().size.c_str(), need / kGiB, have / kGiB);
    fail(message);
}

}  // namespace shmem_mt
