#include "options.h"

#include <getopt.h>
#include <heddle/constants.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "allocation.h"
#include "base/spelling.h"
#include "bootstrap/job_page.h"
#include "chaos.h"
#include "help.h"
#include "hosts.h"

namespace heddle::launcher {

namespace {

constexpr double kLongestS = 1e9;  // 31 years: keeps nanoseconds within 64 bits

constexpr const char* kShortOptions = "+:n:N:c:x:H:vh";
enum Kind {
    kNumber = 'n',
    kPerHost = 'N',
    kCores = 'c',
    kVariable = 'x',
    kHosts = 'H',
    kVerbose = 'v',
    kHelp = 'h',
    kFirst = 256
};
enum LongKind {
    kTimeout = kFirst,
    kGrace,
    kBind,
    kTagOutput,
    kHostFile,
    kFolder,
    kOutputDir,
    kStdin,
    kPrefix,
    kReportBindings,
    kChaos,
    kChaosRuns,
    kCompare,
    kProfile,
    kTrace,
    kStatus,
    kTop,
    kVersion
};

const option kLongOptions[] = {
    {"np", required_argument, nullptr, kNumber},
    {"ppn", required_argument, nullptr, kPerHost},
    {"env", required_argument, nullptr, kVariable},
    {"wdir", required_argument, nullptr, kFolder},
    {"hosts", required_argument, nullptr, kHosts},
    {"host", required_argument, nullptr, kHosts},
    {"hostfile", required_argument, nullptr, kHostFile},
    {"timeout", required_argument, nullptr, kTimeout},
    {"grace", required_argument, nullptr, kGrace},
    {"bind", required_argument, nullptr, kBind},
    {"cores-per-pe", required_argument, nullptr, kCores},
    {"report-bindings", no_argument, nullptr, kReportBindings},
    {"tag-output", no_argument, nullptr, kTagOutput},
    {"output-dir", required_argument, nullptr, kOutputDir},
    {"stdin", required_argument, nullptr, kStdin},
    {"prefix", required_argument, nullptr, kPrefix},
    {"chaos", optional_argument, nullptr, kChaos},
    {"chaos-runs", required_argument, nullptr, kChaosRuns},
    {"compare-output", no_argument, nullptr, kCompare},
    {"profile", optional_argument, nullptr, kProfile},
    {"trace", required_argument, nullptr, kTrace},
    {"verbose", no_argument, nullptr, kVerbose},
    {"help", no_argument, nullptr, kHelp},
    {"version", no_argument, nullptr, kVersion},
    {"status", optional_argument, nullptr, kStatus},
    {"top", optional_argument, nullptr, kTop},
    {nullptr, 0, nullptr, 0},
};

// Options of other launchers that no misspelling leads to, and the ones of oshrun.
constexpr struct {
    const char *other, *own;
} kElsewhere[] = {
    {"bind-to", "bind"},
    {"ntasks", "np"},
    {"cpu-bind", "bind"},
    {"chdir", "wdir"},
    {"wd", "wdir"},
    {"output-filename", "output-dir"},
    {"nodelist", "hosts"},
    {"label", "tag-output"},
    {"machinefile", "hostfile"},
    {"npernode", "ppn"},
    {"cpus-per-task", "cores-per-pe"},
    {"cpus-per-proc", "cores-per-pe"},
    {"cpus-per-rank", "cores-per-pe"},
    {"genv", "env"},
    {"export", "env"},
    {"ntasks-per-node", "ppn"},
};

// The most letters that a misspelling of a name of so many may differ in.
size_t most_wrong_letters(size_t length) {
    return length < 4 ? 1 : length < 7 ? 2 : 3;
}

// "; did you mean --hosts?", or nothing when no option is near. word: as it was written, with its dashes.
std::string nearest_option(const char* word) {
    std::string name = word + strspn(word, "-");
    name.erase(std::min(name.find('='), name.size()));
    base::Nearest nearest(name.c_str(), most_wrong_letters(name.size()));
    for (const auto& elsewhere : kElsewhere)
        if (name == elsewhere.other)
            return std::string("; did you mean --") + elsewhere.own + "?";
    for (const option* known = kLongOptions; known->name; ++known) nearest.offer(known->name, known->name);
    return nearest.full() ? std::string("; did you mean --") + nearest.full() + "?" : "";
}

bool parse_count(const char* option, const char* what, const char* text, int* count) {
    const char* end = text + strlen(text);
    const auto [rest, error] = std::from_chars(text, end, *count);
    if (error == std::errc() && rest == end && *count >= 1 && *count <= bootstrap::kMaxPes)
        return true;
    fprintf(stderr, "oshrun: %s %s: the number of %s must be a whole number from 1 to %d\n", option, text, what,
            bootstrap::kMaxPes);
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

// Explains a word that is none of the choices. right: the choices as a text.
void explain_choice(const char* option, const char* text, const char* right, std::initializer_list<const char*> words) {
    base::Nearest nearest(text, most_wrong_letters(strlen(text)));
    for (const char* word : words) nearest.offer(word, word);
    fprintf(stderr, "oshrun: %s %s: must be %s%s%s%s\n", option, text, right, nearest.full() ? "; did you mean " : "",
            nearest.full() ? nearest.full() : "", nearest.full() ? "?" : "");
}

bool parse_bind(const char* text, Bind* bind) {
    for (const auto& [word, meant] : {std::pair{"core", Bind::kCore}, {"numa", Bind::kNuma}, {"none", Bind::kNone}}) {
        *bind = meant;
        if (strcmp(text, word) == 0)
            return true;
    }
    explain_choice("--bind", text, "core, numa or none", {"core", "numa", "none"});
    return false;
}

bool parse_reader(const char* text, int* reader) {
    const char* end = text + strlen(text);
    const auto [rest, error] = std::from_chars(text, end, *reader);
    if (error == std::errc() && rest == end && *reader >= 0)
        return true;
    *reader = strcmp(text, "all") == 0 ? Options::kAllRead : Options::kNoneReads;
    if (*reader == Options::kAllRead || strcmp(text, "none") == 0)
        return true;
    explain_choice("--stdin", text, "all, none or the number of a PE", {"all", "none"});
    return false;
}

bool parse_variable(const char* text, Program* program) {
    const char* equals = strchr(text, '=');
    const std::string name = equals ? std::string(text, equals) : text;
    const char* value = equals ? equals + 1 : getenv(text);
    if (name.empty()) {
        fprintf(stderr, "oshrun: --env %s: must be NAME=VALUE, or the NAME of a variable that is set\n", text);
        return false;
    }
    if (!value) {
        fprintf(stderr, "oshrun: --env %s: must be NAME=VALUE: %s has no value here to pass on\n", text, text);
        return false;
    }
    program->environment.emplace_back(name, value);
    return true;
}

// --profile[=FILE]: a setting of all PEs.
bool ask_for_profile(const char* file) {
    if (file && file[0] == '\0') {
        fprintf(stderr,
                "oshrun: --profile=: the name of a file is missing: right would be --profile=FILE, or --profile\n");
        return false;
    }
    setenv("HEDDLE_PROFILE", file ? file : "1", 1);
    return true;
}

// --trace FILE: likewise.
bool ask_for_trace(const char* file) {
    if (file[0] == '\0') {
        fprintf(stderr, "oshrun: --trace: the name of a file is missing: right would be --trace FILE\n");
        return false;
    }
    setenv("HEDDLE_TRACE", file, 1);
    return true;
}

// The absolute path, without links, of a directory that must exist.
bool parse_folder(const char* option, const char* text, std::string* folder) {
    char* const path = realpath(text, nullptr);
    if (!path) {
        fprintf(stderr, "oshrun: %s %s: %s\n", option, text, strerror(errno));
        return false;
    }
    *folder = path;
    free(path);
    return true;
}

bool take_hosts(int option, const char* text, Options* options) {
    if (!options->hosts.empty()) {
        fprintf(stderr, "oshrun: the hosts are given twice: use --hosts or --hostfile, once\n");
        return false;
    }
    return option == kHosts ? read_hosts(text, &options->hosts) : read_host_file(text, &options->hosts);
}

// Explains the option that getopt refused; `word` contains it.
void explain_bad_option(int kind, const char* word) {
    const bool is_long = strncmp(word, "--", 2) == 0;
    char letter[3] = {'-', static_cast<char>(optopt), '\0'};
    const char* name = is_long || strlen(word) > 2 ? word : letter;
    if (kind == ':')
        fprintf(stderr, "oshrun: %s needs a value; see oshrun --help\n", name);
    else if (is_long && optopt != 0)
        fprintf(stderr, "oshrun: %s: this option takes no value; see oshrun --help\n", name);
    else
        fprintf(stderr, "oshrun: unknown option %s%s; see oshrun --help\n", name, nearest_option(name).c_str());
}

// True for a long name behind one dash, such as -hosts, which getopt would take for letters.
bool lacks_a_dash(const char* word) {
    if (word[0] != '-' || word[1] == '-' || strlen(word) < 4)
        return false;
    for (const option* known = kLongOptions; known->name; ++known)
        if (strcmp(known->name, word + 1) == 0)
            return true;
    return false;
}

// Takes one option's value. False after a line on stderr.
bool take(int kind, Options* options, Program* program) {
    switch (kind) {
        case kNumber:
            return parse_count("-n", "PEs", optarg, &program->pes);
        case kPerHost:
            return parse_count("--ppn", "PEs on a host", optarg, &options->pes_per_host);
        case kVariable:
            return parse_variable(optarg, program);
        case kFolder:
            return parse_folder("--wdir", optarg, &program->folder);
        case kHosts:
        case kHostFile:
            return take_hosts(kind, optarg, options);
        case kTimeout:
            return parse_seconds("--timeout", optarg, false, &options->timeout_s);
        case kGrace:
            options->has_grace = true;
            return parse_seconds("--grace", optarg, true, &options->grace_s);
        case kBind:
            return parse_bind(optarg, &options->bind);
        case kCores:
            return parse_count("--cores-per-pe", "cores", optarg, &options->cores_per_pe);
        case kReportBindings:
            options->report_bindings = true;
            return true;
        case kTagOutput:
            options->tag_output = true;
            return true;
        case kOutputDir:
            options->output_dir = optarg;
            return true;
        case kStdin:
            return parse_reader(optarg, &options->reader);
        case kPrefix:
            return parse_folder("--prefix", optarg, &options->prefix);
        case kChaos:
            options->chaos = true;
            return !optarg || parse_seed("--chaos=", optarg, &options->chaos_seed);
        case kChaosRuns:
            options->chaos = true;
            return parse_runs(optarg, &options->chaos_runs);
        case kCompare:
            options->compare_output = true;
            return true;
        case kProfile:
            return ask_for_profile(optarg);
        case kTrace:
            return ask_for_trace(optarg);
        default:
            options->verbose = true;
            return true;
    }
}

bool is_about_chaos(int kind) {
    return kind == kChaos || kind == kChaosRuns || kind == kCompare;
}

// True, after a line on stderr, where a number follows --chaos as if it were the option's value.
bool lacks_an_equals_sign(const char* next) {
    if (!next || next[0] == '\0' || next[strspn(next, "0123456789")] != '\0')
        return false;
    fprintf(stderr, "oshrun: --chaos %s: an equals sign is before the seed: --chaos=%s\n", next, next);
    return true;
}

// --status [JOB] or --top [JOB]. job: the word behind it, or null; left: the number of words behind that.
Parsed parse_job(int kind, const char* job, int left, Options* options) {
    const Parsed parsed = kind == kTop ? Parsed::kTop : Parsed::kStatus;
    if (!job)
        return parsed;
    const char* const end = job + strlen(job);
    const auto [rest, error] = std::from_chars(job, end, options->status_of);
    if (error == std::errc() && rest == end && options->status_of > 0 && left <= 0)
        return parsed;
    fprintf(stderr, "oshrun: --%s %s: right would be the process number of an oshrun or a PE, and nothing else\n",
            kind == kTop ? "top" : "status", job);
    return Parsed::kBad;
}

// Parses one part of the command line: argv[0] is the word before it. Leaves its program in options.
Parsed parse_part(int argc, char** argv, Options* options) {
    const bool is_first = options->programs.empty();
    Program program;
    options->words.emplace_back(is_first ? argv[0] : ":");
    optind = 0;  // makes the C library begin anew
    for (int word = 1;; word = optind) {
        if (word < argc && lacks_a_dash(argv[word])) {
            fprintf(stderr, "oshrun: unknown option %s%s; see oshrun --help\n", argv[word],
                    nearest_option(argv[word]).c_str());
            return Parsed::kBad;
        }
        const int kind = getopt_long(argc, argv, kShortOptions, kLongOptions, nullptr);
        if (kind == -1) {
            options->words.insert(options->words.end(), argv + word, argv + argc);
            break;
        }
        if (kind == kNumber && strcmp(argv[word], "-np") == 0 && optind < argc)  // as other launchers write it
            optarg = argv[optind++];
        if (kind == '?' || kind == ':') {
            explain_bad_option(kind, argv[word]);
            return Parsed::kBad;
        }
        if (kind == kHelp) {
            print_help();
            return Parsed::kAnswered;
        }
        if (kind == kVersion) {
            printf("oshrun (" SHMEM_VENDOR_STRING ")\n");
            return Parsed::kAnswered;
        }
        if (kind == kStatus || kind == kTop)
            return parse_job(kind, optarg ? optarg : argv[optind], argc - optind - (optarg ? 0 : 1), options);
        if (!is_first && kind != kNumber && kind != kVariable && kind != kFolder) {
            fprintf(stderr,
                    "oshrun: %s behind a ':': it holds for the whole job, and stands before the first program; only "
                    "-n, -x and --wdir are a program's own\n",
                    argv[word]);
            return Parsed::kBad;
        }
        if (!take(kind, options, &program) || (kind == kChaos && !optarg && lacks_an_equals_sign(argv[optind])))
            return Parsed::kBad;
        if (!is_about_chaos(kind))
            options->words.insert(options->words.end(), argv + word, argv + optind);
    }
    program.words = argv + optind;
    options->programs.push_back(program);
    return Parsed::kRun;
}

// Puts the folders of --prefix before those that the program would look into.
void use_prefix(const std::string& prefix, Program* program) {
    for (const auto& [name, folder] : {std::pair{"PATH", "/bin"}, {"LD_LIBRARY_PATH", "/lib"}}) {
        const char* others = getenv(name);
        for (const auto& [known, value] : program->environment)
            if (known == name)
                others = value.c_str();
        std::string all = prefix + folder;
        if (others && others[0] != '\0')
            all.append(":").append(others);
        program->environment.emplace_back(name, all);
    }
}

// Finds the number of PEs where -n does not tell it. False, after a line on stderr, when nothing does.
bool complete(Options* options) {
    const bool several = options->programs.size() > 1;
    Program& first = options->programs[0];
    int places = 0;
    for (Host& host : options->hosts) {
        if (host.pes == 0)
            host.pes = std::max(options->pes_per_host, 1);
        places += host.pes;
    }
    if (options->pes_per_host > 0 && first.pes == 0 && !several)
        first.pes = options->hosts.empty() ? options->pes_per_host : places;
    for (const Program& program : options->programs) {
        const char* const word = program.words[0];
        const bool is_number = word && word[0] != '\0' && word[strspn(word, "0123456789")] == '\0';
        if (program.pes == 0) {
            const std::string meant = is_number ? std::string("; did you mean -n ") + word + "?" : "";
            fprintf(stderr, "oshrun: no number of PEs given%s%s; use: oshrun -n N program [arguments]\n",
                    several ? " for each program" : "", meant.c_str());
            return false;
        }
        if (!word || word[0] == '\0') {
            fprintf(stderr, "oshrun: no program given%s; use: oshrun -n N program [arguments]\n",
                    several ? " before or behind a ':'" : "");
            return false;
        }
        options->pes += program.pes;
    }
    return true;
}

// False, after a line on stderr, when options contradict each other.
bool fits_together(const Options& options) {
    if (options.pes > bootstrap::kMaxPes) {
        fprintf(stderr, "oshrun: -n %d: the number of PEs must be a whole number from 1 to %d\n", options.pes,
                bootstrap::kMaxPes);
        return false;
    }
    if (options.reader >= options.pes) {
        fprintf(stderr, "oshrun: --stdin %d: there is no such PE: the PEs have numbers from 0 to %d\n", options.reader,
                options.pes - 1);
        return false;
    }
    if (options.hosts.empty()) {
        if (options.pes_per_host == 0 || options.pes <= options.pes_per_host)
            return true;
        fprintf(stderr, "oshrun: -n %d: --ppn %d takes more than this host; name the hosts with --hosts\n", options.pes,
                options.pes_per_host);
        return false;
    }
    int places = 0;
    for (const Host& host : options.hosts) places += std::min(host.pes, options.pes - places);
    if (places < options.pes) {
        fprintf(stderr, "oshrun: -n %d: the hosts %s have room for %d; a host takes as many PEs as %s\n", options.pes,
                options.scheduler.empty() ? "named" : ("of the allocation by " + options.scheduler).c_str(), places,
                options.scheduler.empty() ? "its number says" : "the scheduler says, or --ppn");
        return false;
    }
    return true;
}

}  // namespace

Parsed parse_options(int argc, char** argv, Options* options) {
    opterr = 0;
    for (int begin = 0; begin < argc;) {
        const int end = static_cast<int>(
            std::find_if(argv + begin + 1, argv + argc, [](const char* word) { return strcmp(word, ":") == 0; }) -
            argv);
        argv[end] = nullptr;  // ends the arguments of the program before it
        if (const Parsed parsed = parse_part(end - begin, argv + begin, options); parsed != Parsed::kRun)
            return parsed;
        begin = end;
    }
    if (!use_allocation(options) || !complete(options) || !fits_together(*options))
        return Parsed::kBad;
    for (Program& program : options->programs)
        if (!options->prefix.empty())
            use_prefix(options->prefix, &program);
    return Parsed::kRun;
}

}  // namespace heddle::launcher
