#include "options.h"

#include <getopt.h>
#include <heddle/constants.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "bootstrap/job_page.h"
#include "hosts.h"

namespace heddle::launcher {

namespace {

constexpr double kLongestS = 1e9;  // 31 years: keeps nanoseconds within 64 bits

constexpr const char* kHelp =
    "Usage: oshrun -n N [options] program [arguments]\n"
    "Runs N PEs of an OpenSHMEM program, on this machine or on several hosts, and ends them together.\n"
    "\n"
    "  -n N, -np N        number of PEs, 1 to %d\n"
    "  --timeout SECONDS  end the job after this time (decimals allowed) with status 124, and tell where each PE "
    "waits\n"
    "  --grace SECONDS    when the job ends early, let PEs end by themselves for this time before they are killed "
    "(0.5)\n"
    "  --bind core|none   core: bind PE i to the i-th usable core, modulo their number; none (default): bind nothing\n"
    "  --tag-output       begin each line of output with [pe]\n"
    "  --env NAME=VALUE   set a variable for the PEs; may be repeated\n"
    "  --hosts A:N,B:N    run on these hosts, filling one after the other; a host without a number takes one PE\n"
    "  --hostfile FILE    the same, a host in each line (a, a:2 or a slots=2); # begins a comment\n"
    "  --help, --version  print this, or the version\n"
    "\n"
    "Several hosts: the PEs are started by the first of prterun, mpirun (Open MPI) and srun in PATH, with PMIx. "
    "Settings\n"
    "(HEDDLE_*, SHMEM_*, SMA_*, UCX_*) and --env reach all hosts; input, output, tags and status are that launcher's.\n"
    "\n"
    "On this machine:\n"
    "Input: PE 0 reads oshrun's standard input, the others read nothing.\n"
    "Output: forwarded by whole lines; lines of different PEs are never mixed. A line longer than 1 MiB may be cut "
    "where\n"
    "another PE writes. On a terminal, a line without its end (a prompt) appears after 0.1 s.\n"
    "The job ends when all PEs have ended, when one fails (nonzero status, signal, _exit ahead of shmem_finalize), "
    "with\n"
    "shmem_global_exit, and with SIGINT, SIGTERM, SIGHUP or SIGQUIT to oshrun: whatever the PEs started and left ends\n"
    "too, by that signal or SIGTERM, and after --grace by SIGKILL. SIGUSR1, SIGUSR2, SIGWINCH and SIGCONT go on to\n"
    "the PEs; SIGTSTP stops the whole job.\n"
    "Status: 0; or that of the first PE that failed (128 + signal when a signal ended it); 1 when Heddle found an "
    "error;\n"
    "2 bad input; 124 timeout; 126 the program cannot be run; 127 no such program; 128 + signal when oshrun got one.\n";

bool parse_pes(const char* text, int* pes) {
    const char* end = text + strlen(text);
    const auto [rest, error] = std::from_chars(text, end, *pes);
    if (error == std::errc() && rest == end && *pes >= 1 && *pes <= bootstrap::kMaxPes)
        return true;
    fprintf(stderr, "oshrun: -n %s: the number of PEs must be a whole number from 1 to %d\n", text, bootstrap::kMaxPes);
    return false;
}

// zero: whether 0 is valid.
bool parse_seconds(const char* option, const char* text, bool zero, double* seconds) {
    char* rest = nullptr;
    *seconds = strtod(text, &rest);
    const bool is_number = rest != text && *rest == '\0' && *seconds <= kLongestS;  // false for NaN, too
    if (is_number && (*seconds > 0 || (zero && *seconds == 0)))
        return true;
    fprintf(stderr, "oshrun: %s %s: must be a number of seconds %s and up to %.0e, for instance 30 or 2.5\n", option,
            text, zero ? "from 0" : "above 0", kLongestS);
    return false;
}

bool parse_bind(const char* text, bool* bind_to_cores) {
    *bind_to_cores = strcmp(text, "core") == 0;
    if (*bind_to_cores || strcmp(text, "none") == 0)
        return true;
    fprintf(stderr, "oshrun: --bind %s: must be core or none\n", text);
    return false;
}

bool parse_variable(const char* text, Options* options) {
    const char* equals = strchr(text, '=');
    if (equals && equals != text) {
        options->environment.emplace_back(std::string(text, equals), equals + 1);
        return true;
    }
    fprintf(stderr, "oshrun: --env %s: must be NAME=VALUE\n", text);
    return false;
}

enum Option { kTimeout = 256, kGrace, kBind, kTagOutput, kEnv, kHosts, kHostFile };

const option kLongOptions[] = {
    {"timeout", required_argument, nullptr, kTimeout},
    {"grace", required_argument, nullptr, kGrace},
    {"bind", required_argument, nullptr, kBind},
    {"tag-output", no_argument, nullptr, kTagOutput},
    {"env", required_argument, nullptr, kEnv},
    {"hosts", required_argument, nullptr, kHosts},
    {"hostfile", required_argument, nullptr, kHostFile},
    {"help", no_argument, nullptr, 'h'},
    {"version", no_argument, nullptr, 'V'},
    {nullptr, 0, nullptr, 0},
};

// Explains the option that getopt refused; `word` contains it.
void explain_bad_option(int kind, const char* word) {
    const bool is_long = strncmp(word, "--", 2) == 0;
    char letter[3] = {'-', static_cast<char>(optopt), '\0'};
    const char* name = is_long ? word : letter;
    if (kind == ':')
        fprintf(stderr, "oshrun: %s needs a value; see oshrun --help\n", name);
    else if (is_long && optopt != 0)
        fprintf(stderr, "oshrun: %s: this option takes no value; see oshrun --help\n", name);
    else
        fprintf(stderr, "oshrun: unknown option %s; see oshrun --help\n", name);
}

// False, after a line on stderr, when options contradict each other. `program`: the words behind the options.
bool fits_together(const Options& options, char** program) {
    if (options.pes == 0) {
        fprintf(stderr, "oshrun: no number of PEs given; use: oshrun -n N program [arguments]\n");
        return false;
    }
    if (!program[0] || program[0][0] == '\0') {
        fprintf(stderr, "oshrun: no program given; use: oshrun -n N program [arguments]\n");
        return false;
    }
    if (options.hosts.empty())
        return true;
    int places = 0;
    for (const Host& host : options.hosts) places += std::min(host.pes, options.pes - places);
    if (places < options.pes) {
        fprintf(stderr,
                "oshrun: -n %d: the hosts named have room for %d; a host takes as many PEs as its number says\n",
                options.pes, places);
        return false;
    }
    if (options.timeout_s > 0) {
        fprintf(stderr,
                "oshrun: --timeout is for jobs on this machine; for several hosts use timeout(1): timeout %.9g "
                "oshrun --hosts ...\n",
                options.timeout_s);
        return false;
    }
    if (options.has_grace) {
        fprintf(stderr, "oshrun: --grace is for jobs on this machine; on several hosts their launcher has its own\n");
        return false;
    }
    return true;
}

bool take_hosts(int option, const char* text, Options* options) {
    if (!options->hosts.empty()) {
        fprintf(stderr, "oshrun: the hosts are given twice: use --hosts or --hostfile, once\n");
        return false;
    }
    return option == kHosts ? read_hosts(text, &options->hosts) : read_host_file(text, &options->hosts);
}

}  // namespace

Parsed parse_options(int argc, char** argv, Options* options) {
    opterr = 0;
    while (true) {
        const int word = optind;
        bool good = true;
        const int kind = getopt_long(argc, argv, "+:n:h", kLongOptions, nullptr);
        if (kind == -1)
            break;
        switch (kind) {
            case 'n':
                if (strcmp(argv[word], "-np") == 0 && argv[optind])  // as other launchers write it
                    optarg = argv[optind++];
                good = parse_pes(optarg, &options->pes);
                break;
            case kTimeout:
                good = parse_seconds("--timeout", optarg, false, &options->timeout_s);
                break;
            case kGrace:
                good = parse_seconds("--grace", optarg, true, &options->grace_s);
                options->has_grace = true;
                break;
            case kBind:
                good = parse_bind(optarg, &options->bind_to_cores);
                break;
            case kTagOutput:
                options->tag_output = true;
                break;
            case kEnv:
                good = parse_variable(optarg, options);
                break;
            case kHosts:
            case kHostFile:
                good = take_hosts(kind, optarg, options);
                break;
            case 'h':
                printf(kHelp, bootstrap::kMaxPes);
                return Parsed::kAnswered;
            case 'V':
                printf("oshrun (" SHMEM_VENDOR_STRING ")\n");
                return Parsed::kAnswered;
            default:
                explain_bad_option(kind, argv[word]);
                good = false;
        }
        if (!good)
            return Parsed::kBad;
    }
    if (!fits_together(*options, argv + optind))
        return Parsed::kBad;
    options->program = argv + optind;
    return Parsed::kRun;
}

}  // namespace heddle::launcher
