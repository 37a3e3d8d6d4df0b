// oshrun: runs the PEs of an OpenSHMEM program on this machine, or hands over to a launcher for several hosts.
// Contract: help.cpp. Implementation: job.h and hosts.h.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/settings.h"
#include "bootstrap/job_page.h"
#include "bootstrap/launch_environment.h"
#include "chaos.h"
#include "chaos_runs.h"
#include "cores.h"
#include "environment.h"
#include "hosts.h"
#include "job.h"
#include "options.h"
#include "os/memfd.h"
#include "os/topology.h"
#include "running_jobs.h"
#include "top.h"

namespace {

// Opens closed standard streams, so that no later descriptor takes their numbers.
bool fill_standard_streams() {
    int fd;
    do {
        fd = open("/dev/null", O_RDWR);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    return fd >= 0 && close(fd) == 0;
}

// Checks the settings that the PEs will find, so that an error is reported once and not by every PE. Each PE reads them
// again, because a script may set others.
bool read_settings(heddle::launcher::Options* options) {
    char** const own = environ;
    for (const heddle::launcher::Program& program : options->programs) {
        heddle::launcher::Environment environment(program);
        char error[1024];
        heddle::base::Settings settings;
        environ = environment.words();
        const bool right = heddle::base::read_settings(&settings, error, sizeof error);
        environ = own;
        if (!right) {
            fprintf(stderr, "oshrun: %s\n", error);
            return false;
        }
        if (&program == options->programs.data())
            options->hang_s = settings.hang_s;
    }
    return true;
}

void report_bindings(const heddle::launcher::Options& options, const std::vector<heddle::launcher::CpuList>& bindings) {
    utsname host;
    uname(&host);
    const std::string all = heddle::launcher::to_text(heddle::launcher::usable_cpus());
    for (int pe = 0; pe < options.pes; ++pe) {
        const std::string list =
            bindings.empty() ? all + ", not bound" : heddle::launcher::to_text(bindings[static_cast<size_t>(pe)]);
        fprintf(stderr, "oshrun: PE %d on %s: cores %s\n", pe, host.nodename, list.c_str());
    }
}

// PEs of the job of oshrun in which this process would be one; 0: there is none.
int pes_of_job_around() {
    namespace bootstrap = heddle::bootstrap;
    const long fd = bootstrap::env_number(bootstrap::kEnvJobFd);
    struct stat file;
    if (fd < 0 || fstat(static_cast<int>(fd), &file) != 0 ||
        static_cast<size_t>(file.st_size) < sizeof(bootstrap::JobPage))
        return 0;
    const size_t bytes = heddle::os::page_bytes();
    auto* const page = static_cast<bootstrap::JobPage*>(heddle::os::map_shared(static_cast<int>(fd), 0, bytes));
    const int pes = page && page->magic == bootstrap::kJobPageMagic ? static_cast<int>(page->n_pes) : 0;
    if (page)
        heddle::os::unmap(page, bytes);
    return pes;
}

// A launcher that starts several oshruns makes several jobs, where the user may have meant one: one of them tells.
void say_when_started_several_times() {
    namespace bootstrap = heddle::bootstrap;
    char launch[128];
    const char* const setting = getenv("HEDDLE_LAUNCH");
    if (setting && strcmp(setting, "alone") == 0)
        return;
    if (const int pes = pes_of_job_around(); pes > 1 && bootstrap::env_number(bootstrap::kEnvPe) == 0)
        snprintf(launch, sizeof launch, "another oshrun (-n %d)", pes);
    else if (pes > 0 || !bootstrap::tells_for_several(launch, sizeof launch))
        return;
    fprintf(stderr,
            "oshrun: %s has started this oshrun as one of several, and each starts a job of its own; right for one job "
            "would be oshrun alone (HEDDLE_LAUNCH=alone silences this)\n",
            launch);
}

}  // namespace

int main(int argc, char** argv) {
    using namespace heddle;
    using namespace heddle::launcher;
    if (!fill_standard_streams()) {
        fprintf(stderr, "oshrun: cannot open /dev/null\n");
        return 1;
    }
    Options options;
    switch (parse_options(argc, argv, &options)) {
        case Parsed::kAnswered:
            return 0;
        case Parsed::kStatus:
            return tell_status(options.status_of);
        case Parsed::kTop:
            return watch_job(options.status_of);
        case Parsed::kBad:
            return kStatusBadInput;
        case Parsed::kRun:
            break;
    }
    if (!settle_seed(&options) || !read_settings(&options))
        return kStatusBadInput;
    say_when_started_several_times();
    if (options.chaos_runs > 0)
        return run_seeds(options);
    if (!options.hosts.empty()) {
        if (options.cores_per_pe > 0)
            plan_threads(INT_MAX, &options);  // the other hosts' cores are not known here
        const int status = hand_over(options);
        if (options.chaos)
            fprintf(stderr, "oshrun: %s\n", seed_line(options).c_str());
        return status;
    }
    if (options.verbose)
        fprintf(stderr, "oshrun: %d PEs on this host, which offers %d cores\n", options.pes, os::usable_cores());
    if (const std::string line = plan_threads(os::usable_cores(), &options); !line.empty())
        fprintf(stderr, "oshrun: %s\n", line.c_str());
    const std::vector<CpuList> bindings = plan_bindings(options);
    if (options.report_bindings)
        report_bindings(options, bindings);
    return Job(options, bindings).run();
}
