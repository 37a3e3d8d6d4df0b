#include "machine_limits.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace heddle::launcher {

namespace {

constexpr rlim_t kOtherFiles =
    24;  // standard streams, job memory, lifeline, signals, epoll, pipes of the PE being started

std::string too_many(int pes, rlim_t most, const char* limit) {
    char text[256];
    snprintf(text, sizeof text, "-n %d: this machine allows at most %llu PEs here (%s)", pes,
             static_cast<unsigned long long>(most), limit);
    return text;
}

}  // namespace

rlimit raise_file_limit() {
    rlimit before = {};
    getrlimit(RLIMIT_NOFILE, &before);
    const rlimit raised = {before.rlim_max, before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &raised);  // if refused, limit_below sees the old value
    return before;
}

std::string limit_below(int pes, bool all_read) {
    const rlim_t files_per_pe = all_read ? 3 : 2;  // read ends of its stdout and stderr, write end of its stdin
    const rlim_t wanted = static_cast<rlim_t>(pes);
    rlimit limit = {};
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < files_per_pe * wanted + kOtherFiles)
        return too_many(pes, limit.rlim_cur < kOtherFiles ? 0 : (limit.rlim_cur - kOtherFiles) / files_per_pe,
                        "open files: ulimit -Hn");
    // The kernel does not limit root's processes.
    if (geteuid() != 0 && getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur < wanted + 1)
        return too_many(pes, std::max<rlim_t>(limit.rlim_cur, 1) - 1, "processes of a user: ulimit -u");
    if (FILE* file = fopen("/proc/sys/kernel/pid_max", "re")) {
        unsigned long long pid_max = 0;
        const bool known = fscanf(file, "%llu", &pid_max) == 1;
        fclose(file);
        if (known && pid_max < wanted + 1)
            return too_many(pes, pid_max - 1, "process numbers: /proc/sys/kernel/pid_max");
    }
    return {};
}

}  // namespace heddle::launcher
