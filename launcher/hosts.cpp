#include "hosts.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "bootstrap/job_page.h"
#include "bootstrap/launch_environment.h"
#include "engine_process.h"
#include "environment.h"
#include "os/clock.h"
#include "os/command.h"
#include "os/plugin.h"
#include "start.h"

namespace heddle::launcher {

namespace {

constexpr int kStatusNoLauncher = 1;
constexpr const char* kBlanks = " \t\r\n";

bool parse_count(const std::string& text, int* count) {
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, *count);
    return error == std::errc() && rest == end && *count >= 1 && *count <= bootstrap::kMaxPes;
}

// Adds a host: a name and, behind `mark`, its number of PEs. False when the text is malformed.
bool add_host(const std::string& text, const char* mark, std::vector<Host>* hosts) {
    const size_t at = text.find(mark);
    const std::string name = text.substr(0, std::min(at, text.find_last_not_of(kBlanks, at - 1) + 1));
    Host host = {name, 0};
    const bool counted = at == std::string::npos || parse_count(text.substr(at + strlen(mark)), &host.pes);
    // A name that begins with "-" would be an option of the launcher; "*" and "/" have a meaning for srun.
    if (!counted || name.empty() || name[0] == '-' || name.find_first_of(" \t:=,*/") != std::string::npos)
        return false;
    hosts->push_back(host);
    return true;
}

// The hosts in a launcher's notation, up to the number of PEs.
std::string list_of(const std::vector<Host>& hosts, int pes, const char* mark) {
    std::string list;
    for (const Host& host : hosts) {
        const int here = std::min(host.pes, pes);
        if (here == 0)
            break;
        list += (list.empty() ? "" : ",") + host.name + mark + std::to_string(here);
        pes -= here;
    }
    return list;
}

// The hosts for srun, each as often as it has PEs: Slurm 22.05 does not know "host*2". A list that does not fit into an
// argument, of 128 KiB, is in that notation.
std::string list_for_srun(const std::vector<Host>& hosts, int pes) {
    constexpr size_t kMaxBytes = 128 * 1024 - 32;
    std::string list;
    int left = pes;
    for (const Host& host : hosts)
        for (int here = std::min(host.pes, left); here > 0; --here, --left)
            list += (list.empty() ? "" : ",") + host.name;
    return list.size() <= kMaxBytes ? list : list_of(hosts, pes, "*");
}

// Variables that all PEs on other hosts need, too: the settings, and those that --env names for the only program.
std::vector<std::string> names_to_export(const Options& options) {
    std::vector<std::string> names;
    const auto add = [&](const std::string& name) {
        if (std::find(names.begin(), names.end(), name) == names.end())
            names.push_back(name);
    };
    for (char** variable = environ; *variable; ++variable)
        for (const char* prefix : {"HEDDLE_", "SHMEM_", "SMA_", "UCX_"})
            if (strncmp(*variable, prefix, strlen(prefix)) == 0 && strchr(*variable, '='))
                add(std::string(*variable, strchr(*variable, '=')));
    if (options.programs.size() == 1)
        for (const auto& [name, value] : options.programs[0].environment) add(name);
    return names;
}

using Words = std::vector<std::string>;

std::string reader_of(const Options& options) {
    return options.reader == Options::kAllRead     ? "all"
           : options.reader == Options::kNoneReads ? "none"
                                                   : std::to_string(options.reader);
}

// The word for how PEs are bound, of those that a launcher has.
const char* binding_of(const Options& options, const char* core, const char* numa) {
    return !options.is_bound() ? "none" : options.bind == Bind::kNuma ? numa : core;
}

// Arguments for Open MPI's mpirun, and for prterun, which differs in one option.
Words for_mpirun(const Options& options, const char* tag) {
    Words words;
    if (geteuid() == 0)
        words.push_back("--allow-run-as-root");
    words.insert(words.end(), {"--host", list_of(options.hosts, options.pes, ":"), "--bind-to",
                               binding_of(options, "core", "numa")});
    if (options.is_bound() && options.cores_per_pe > 0)
        words.insert(words.end(), {"--map-by", "slot:PE=" + std::to_string(options.cores_per_pe)});
    if (options.report_bindings) {
        if (tag[0] != '-')
            words.insert(words.end(), {"--display", "bind"});
        else
            words.push_back("--report-bindings");
    }
    if (options.tag_output) {
        if (tag[0] != '-')
            words.push_back("--output");
        words.push_back(tag);
    }
    if (options.reader != 0)
        words.insert(words.end(), {"--stdin", reader_of(options)});
    for (const std::string& name : names_to_export(options)) words.insert(words.end(), {"-x", name});
    return words;
}

// Arguments for srun, which passes all variables to the PEs by itself. protocol: pmix or pmi2.
Words for_srun(const Options& options, const std::string& protocol) {
    Words words = {"--mpi=" + protocol,
                   "--input=" + reader_of(options),
                   "--distribution=arbitrary",
                   "--kill-on-bad-exit",   // otherwise srun waits for the PEs that have not called shmem_init
                   "--quit-on-interrupt",  // otherwise the first Ctrl-C only shows where the PEs are
                   "--nodelist=" + list_for_srun(options.hosts, options.pes),
                   std::string(options.report_bindings ? "--cpu-bind=verbose," : "--cpu-bind=") +
                       binding_of(options, "cores", "ldoms")};
    if (options.cores_per_pe > 0)
        words.push_back("--cpus-per-task=" + std::to_string(options.cores_per_pe));
    if (options.tag_output)
        words.push_back("--label");
    return words;
}

// Arguments for hydra's mpiexec, which passes all variables on by itself.
Words for_hydra(const Options& options) {
    const char* const bound = binding_of(options, "core", "numa");
    const bool counted = options.cores_per_pe > 0 && options.is_bound() && options.bind != Bind::kNuma;
    Words words = {"-hosts", list_of(options.hosts, options.pes, ":"), "-bind-to",
                   counted ? std::string(bound) + ":" + std::to_string(options.cores_per_pe) : bound};
    if (options.tag_output)
        words.push_back("-prepend-rank");
    return words;
}

// Arguments for flux run, which passes all variables on by itself.
Words for_flux(const Options& options) {
    std::string hosts;
    for (const Host& host : options.hosts) hosts.append(hosts.empty() ? "" : ",").append(host.name);
    Words words = {"run", "--requires=host:" + hosts,
                   std::string("--setopt=cpu-affinity=") + (options.is_bound() ? "per-task" : "off")};
    if (options.cores_per_pe > 0)
        words.push_back("--cores-per-task=" + std::to_string(options.cores_per_pe));
    if (options.reader != Options::kAllRead)  // the default of flux
        words.push_back("--input=" + (options.reader == Options::kNoneReads ? "/dev/null" : reader_of(options)));
    if (options.tag_output)
        words.push_back("--label-io");
    return words;
}

// Runs its further arguments, with output to the files that --output-dir names. $0: the directory.
constexpr const char* kToFiles =
    "mkdir -p \"$0\" && pe=${PMIX_RANK:-$PMI_RANK} && exec \"$@\" >\"$0/pe.$pe.out\" 2>\"$0/pe.$pe.err\"";

// Arguments for one program, the program among them.
Words words_for_program(const Options& options, const Program& program, const char* folder_option) {
    Words words = {"-n", std::to_string(program.pes)};
    if (!program.folder.empty())
        words.insert(words.end(), {folder_option, program.folder});
    if (!options.output_dir.empty())
        words.insert(words.end(), {"/bin/sh", "-c", kToFiles, options.output_dir});
    if (options.programs.size() > 1 && !program.environment.empty()) {  // the launcher's option is for all programs
        words.push_back("env");
        for (const auto& [name, value] : program.environment) words.emplace_back(name).append("=").append(value);
    }
    for (char** word = program.words; *word; ++word) words.push_back(*word);
    return words;
}

// The launchers to which oshrun hands over, by the way in which they take options.
enum class Family { kNone, kPrrte, kOpenMpi, kSrun, kHydra, kFlux };

bool is_of_open_mpi(Family family) {
    return family == Family::kPrrte || family == Family::kOpenMpi;
}

// A launcher that answers; family kNone: none.
struct Engine {
    Family family = Family::kNone;
    std::string path;
    std::string protocol;  // of srun: pmix or pmi2
};

// Asks a launcher what it is. False, with the reason, when it would not start PEs here.
bool ask(const std::string& name, Engine* engine, std::string* reason) {
    std::string text;
    const bool is_srun = name == "srun", is_flux = name == "flux";
    const Words question = {engine->path, is_srun ? "--mpi=list" : is_flux ? "version" : "--version"};
    if (const int status = os::run_command(question, &text); status != 0 || (is_flux && !bootstrap::has_flux())) {
        *reason = is_flux && status == 0 ? "there is no instance of Flux here (FLUX_URI)"
                                         : question[1] + (status < 0 ? " does not answer" : " fails");
        return false;
    }
    const auto says = [&](const char* word) { return text.find(word) != std::string::npos; };
    const bool has_pmix = os::is_built(os::kPmixPart);
    engine->protocol = has_pmix && says("pmix") ? "pmix" : says("pmi2") ? "pmi2" : "";
    engine->family = is_srun                                 ? Family::kSrun
                     : is_flux                               ? Family::kFlux
                     : says("HYDRA") || says("Intel(R) MPI") ? Family::kHydra
                     : name == "prterun"                     ? Family::kPrrte
                     : says("Open MPI") || says("OpenRTE")   ? Family::kOpenMpi
                                                             : Family::kNone;
    if (engine->family == Family::kNone)
        *reason = "it is neither Open MPI's, PRRTE's nor hydra's";
    if (is_srun && engine->protocol.empty())
        *reason = has_pmix ? "it has neither pmix nor pmi2 (--mpi=list)" : "it has no pmi2 (--mpi=list)";
    if (!has_pmix && is_of_open_mpi(engine->family))
        *reason = "it speaks PMIx, and this Heddle is without that";
    return reason->empty();
}

// The first launcher in PATH that works with this build of Heddle; the scheduler's own comes first in its allocation.
// tried: what was found and does not work, for the user.
Engine find_engine(const Options& options, std::string* tried) {
    Words names = {"prterun", "mpirun", "srun", "mpiexec.hydra", "mpiexec", "flux"};
    if (!options.scheduler.empty())
        names.insert(names.begin(), options.scheduler == "Slurm" ? "srun" : "flux");
    for (const std::string& name : names) {
        Engine engine;
        std::string reason;
        if (find_program(name, getenv("PATH"), &engine.path) != 0)
            continue;
        if (ask(name, &engine, &reason))
            return engine;
        if (tried->find(engine.path + ":") == std::string::npos)
            tried->append(tried->empty() ? "" : "; ").append(engine.path).append(": ").append(reason);
    }
    return {};
}

void name_missing_part(const os::Part& part) {
    fprintf(stderr, "oshrun: this Heddle was %s\n", os::describe_missing(part).c_str());
}

// Arguments for a launcher; empty, after a line on stderr, when it cannot do what the options ask for.
Words words_for(const Engine& engine, const Options& options) {
    const bool runs_several = engine.family != Family::kSrun && engine.family != Family::kFlux;
    if (!runs_several && options.programs.size() > 1) {
        fprintf(stderr, "oshrun: several programs (':') on several hosts need prterun or mpirun; %s runs one\n",
                engine.path.c_str());
        return {};
    }
    if (options.reader != 0 && engine.family == Family::kHydra) {
        fprintf(stderr,
                "oshrun: --stdin on several hosts needs prterun, mpirun, srun or flux; %s gives input to PE 0\n",
                engine.path.c_str());
        return {};
    }
    if (options.has_grace && !runs_several) {  // srun (22.05) sends SIGKILL at once
        fprintf(stderr, "oshrun: --grace on several hosts needs prterun, mpirun or hydra's mpiexec; %s has none\n",
                engine.path.c_str());
        return {};
    }
    Words words;
    const char* folder_option = "--wdir";
    switch (engine.family) {
        case Family::kPrrte:
            words = for_mpirun(options, "tag");
            break;
        case Family::kOpenMpi:
            words = for_mpirun(options, "--tag-output");
            break;
        case Family::kSrun:
            words = for_srun(options, engine.protocol);
            folder_option = "--chdir";
            break;
        case Family::kHydra:
            words = for_hydra(options);
            folder_option = "-wdir";
            break;
        default:
            words = for_flux(options);
            folder_option = "--cwd";
    }
    for (const Program& program : options.programs) {
        if (&program != options.programs.data())
            words.push_back(":");
        const Words more = words_for_program(options, program, folder_option);
        words.insert(words.end(), more.begin(), more.end());
    }
    return words;
}

// Tells the PEs the deadline of --timeout.
void export_deadline(double timeout_s) {
    const auto timeout_ns = static_cast<uint64_t>(timeout_s * 1e9);
    const uint64_t end_ns = os::clock_ns(CLOCK_REALTIME) + timeout_ns;
    setenv(bootstrap::kEnvDeadline, (std::to_string(timeout_ns) + ":" + std::to_string(end_ns)).c_str(), 1);
}

// What --grace is for the launcher: Open MPI and PRRTE wait so long, in whole seconds, before each of SIGTERM and
// SIGKILL, on one host after the other.
void set_grace(double grace_s) {
    const std::string seconds = std::to_string(static_cast<int64_t>(std::ceil(grace_s)));
    for (const char* prefix : {"OMPI", "PRTE"})
        setenv((std::string(prefix) + "_MCA_odls_base_sigkill_timeout").c_str(), seconds.c_str(), 1);
}

// From SIGTERM to SIGKILL for the launcher: for it to end its hosts, and to collect their output.
double end_s_of(const Engine& engine, const Options& options) {
    constexpr double kEndS = 10, kPeriods = 4;
    if (!options.has_grace)
        return kEndS;
    return is_of_open_mpi(engine.family) ? kEndS + kPeriods * std::ceil(options.grace_s) : options.grace_s;
}

// Open MPI and PRRTE would wait for an unreachable host for minutes: once they have told the host to end its PEs, the
// kernel no longer probes the connection. With these defaults they notice first: two probes, a second apart, after a
// second of silence, before HEDDLE_NET_HEARTBEAT_TIMEOUT_S. Values that the user has set are kept.
void notice_silent_hosts() {
    for (const char* prefix : {"OMPI", "PRTE"})
        for (const auto& [name, value] : {std::pair{"time", "1"}, {"intvl", "1"}, {"probes", "2"}})
            setenv((std::string(prefix) + "_MCA_oob_tcp_keepalive_" + name).c_str(), value, 0);
}

}  // namespace

bool read_hosts(const char* text, std::vector<Host>* hosts) {
    const std::string all = text;
    for (size_t begin = 0; begin <= all.size();) {
        const size_t end = std::min(all.find(',', begin), all.size());
        const std::string word = all.substr(begin, end - begin);
        begin = end + 1;
        if (add_host(word, ":", hosts))
            continue;
        fprintf(stderr, "oshrun: --hosts %s: '%s' must be a host, or a host and its number of PEs, for instance a:2\n",
                text, word.c_str());
        return false;
    }
    return true;
}

bool read_host_file(const char* path, std::vector<Host>* hosts) {
    FILE* file = fopen(path, "re");
    if (!file) {
        fprintf(stderr, "oshrun: --hostfile %s: %s\n", path, strerror(errno));
        return false;
    }
    char* line = nullptr;
    size_t room = 0;
    int number = 0;
    bool good = true;
    while (good && getline(&line, &room, file) >= 0) {
        ++number;
        std::string text = line;
        text.erase(std::min(text.find('#'), text.size()));
        text.erase(text.find_last_not_of(kBlanks) + 1);
        text.erase(0, std::min(text.find_first_not_of(kBlanks), text.size()));
        good = text.empty() || add_host(text, text.find("slots=") == std::string::npos ? ":" : "slots=", hosts);
        if (!good)
            fprintf(stderr, "oshrun: --hostfile %s: line %d: '%s' must be a host, or as 'a:2' or 'a slots=2'\n", path,
                    number, text.c_str());
    }
    free(line);
    fclose(file);
    if (good && hosts->empty())
        fprintf(stderr, "oshrun: --hostfile %s: it names no host\n", path);
    return good && !hosts->empty();
}

int hand_over(const Options& options) {
    std::string tried;
    const Engine engine = find_engine(options, &tried);
    if (engine.family == Family::kNone) {
        fprintf(stderr,
                "oshrun: several hosts need prterun, mpirun, srun, hydra's mpiexec or flux, and none that works is in "
                "PATH%s%s%s; install one: apt-get install openmpi-bin (Debian, Ubuntu), dnf install openmpi (Fedora)\n",
                tried.empty() ? "" : " (", tried.c_str(), tried.empty() ? "" : ")");
        if (!os::is_built(os::kPmixPart))
            name_missing_part(os::kPmixPart);
        return kStatusNoLauncher;
    }
    if (!os::is_built(os::kNetworkPart))
        name_missing_part(os::kNetworkPart);
    setenv(bootstrap::kEnvHandedOver, engine.path.substr(engine.path.rfind('/') + 1).c_str(), 1);
    if (options.timeout_s > 0)
        export_deadline(options.timeout_s);
    if (options.has_grace)
        set_grace(options.grace_s);
    notice_silent_hosts();
    Words words = words_for(engine, options);
    if (words.empty())
        return kStatusBadInput;
    Environment environment(options.programs.size() == 1 ? options.programs[0] : Program());
    std::string path = engine.path;
    std::vector<char*> arguments = {path.data()};
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    if (options.verbose)
        fprintf(stderr, "oshrun: %s starts the PEs\n", path.c_str());
    if (options.has_grace && !is_of_open_mpi(engine.family))
        fprintf(stderr, "oshrun: %s ends the PEs by SIGKILL when one of them fails; --grace is for other ends\n",
                path.c_str());
    return run_engine({path.c_str(), arguments.data(), environment.words(), end_s_of(engine, options)}, options);
}

}  // namespace heddle::launcher
