#include "checking/status/self_report.h"

#include "base/error.h"
#include "base/settings.h"
#include "base/source_line.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/own_status.h"
#include "os/clock.h"
#include "os/process.h"
#include "os/signal_names.h"

#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace heddle::checking {

using bootstrap::job;

namespace {

constexpr uint64_t kHungNs = 1'000 * os::kMillisecondNs;      // as the launcher's: of a wait that is told at the end
constexpr uint64_t kEndLinesNs = 300 * os::kMillisecondNs;    // for lines of source at the end: mpirun gives a second
constexpr uint64_t kPatienceNs = 3'000 * os::kMillisecondNs;  // with the PE that tells

}  // namespace

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

namespace {

// True when a PE has failed: its end is the reason, which its launcher tells.
bool has_failed(const bootstrap::StatusSource& source) {
    for (int slot = 0; slot < job.n_slots; ++slot) {
        const bootstrap::PeState state = state_of(job.record(slot));
        if (source.processes[static_cast<size_t>(slot)].ended &&
            (state == bootstrap::PeState::kRunning || state == bootstrap::PeState::kLeaving))
            return true;
    }
    return bootstrap::is_ending();
}

void tell_all_at_end(int signal) {
    const bootstrap::StatusSource source = bootstrap::source_of_own_page(kEndLinesNs);
    if (has_failed(source) || !bootstrap::any_waits(source, source.now_ns - std::min(source.now_ns, kHungNs)))
        return;
    char host[64] = "?", name[16];
    gethostname(host, sizeof host - 1);
    snprintf(name, sizeof name, "SIG%s", os::name_of_signal(signal));
    const std::vector<std::string> lines = bootstrap::describe_pes(source);
    base::report(name, "the job ends. The PEs of host %s are:", host);
    for (const std::string& line : lines) base::report(name, "%s", line.c_str());
}

}  // namespace

void tell_end(int signal) {
    const bootstrap::PeState state = state_of(job.own_record());
    if (state != bootstrap::PeState::kRunning && state != bootstrap::PeState::kLeaving)
        return;
    // Relaxed, here and below: nothing but this word is handed on.
    std::atomic<uint32_t>& told = job.page->end_told;
    uint32_t teller = 0;  // its slot, plus one
    if (told.compare_exchange_strong(teller, static_cast<uint32_t>(job.slot) + 1, std::memory_order_relaxed)) {
        tell_all_at_end(signal);
        told.store(bootstrap::kEndTold, std::memory_order_relaxed);
        return;
    }
    for (const uint64_t end_ns = os::now_ns() + kPatienceNs;
         told.load(std::memory_order_relaxed) != bootstrap::kEndTold && os::now_ns() < end_ns;)
        os::sleep_ns(os::kMillisecondNs);
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
