#include "checking/status/self_report.h"

#include "base/error.h"
#include "base/settings.h"
#include "base/source_line.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/own_status.h"

#include <unistd.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace heddle::checking {

using bootstrap::job;

void tell_if_none_comes_forward(uint64_t now_ns) {
    const uint64_t hang_s = base::settings.hang_s;
    if (hang_s == 0 || job.launcher_pid != 0 || now_ns <= hang_s * 1000000000)
        return;
    // PEs of other hosts may compute: by default the notice is only for jobs all of whose PEs are on this page.
    if (job.n_slots < job.n_pes && !getenv("HEDDLE_HANG_S"))
        return;
    const bootstrap::StatusSource source = bootstrap::source_of_own_page(0);
    if (!bootstrap::all_wait(source, now_ns - hang_s * 1000000000) ||
        job.page->hang_told.exchange(1, std::memory_order_relaxed) != 0)
        return;
    char host[64] = "?";
    gethostname(host, sizeof host - 1);
    base::report("HEDDLE_HANG_S", "no PE of host %s came forward for %llu s. They are:", host,
                 static_cast<unsigned long long>(hang_s));
    for (const std::string& line : bootstrap::describe_pes(source)) base::report("HEDDLE_HANG_S", "%s", line.c_str());
}

void tell_own_place(const char* interrupted_at) {
    const bootstrap::StatusSource source = bootstrap::source_of_own_page();
    const std::vector<std::string> places = bootstrap::describe_pe(source, job.slot);
    char with_line[512] = "";
    if (interrupted_at[0] != '\0') {
        char text[128];
        snprintf(text, sizeof text, " at %s", interrupted_at);
        base::add_source_lines(text, with_line, sizeof with_line);
    }
    for (const std::string& place : places) base::report("status", "%s%s", place.c_str(), with_line);
    if (const std::string calls = bootstrap::describe_last_calls(source, job.slot); !calls.empty())
        base::report("status", "last calls: %s", calls.c_str());
}

}  // namespace heddle::checking
