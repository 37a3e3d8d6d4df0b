// The command line of oshrun: its options, and the messages about wrong ones. Threads: one. Starts no process but
// flux, which tells the hosts of an instance.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace heddle::launcher {

constexpr int kStatusBadInput = 2;
constexpr int kStatusTimeout = 124;  // that of timeout(1)
constexpr int kStatusSignal = 128;   // and the signal's number

struct Host {
    std::string name;
    int pes;  // the most PEs on this host; 0 while only its name is known
};

// A part of the command line, between words ":": consecutive PEs that run one program.
struct Program {
    int pes = 0;
    std::vector<std::pair<std::string, std::string>> environment;  // -x
    std::string folder;                                            // --wdir; empty: the launcher's own
    char** words = nullptr;  // the program's arguments, its name first, null last; points into argv
};

enum class Bind { kByCores, kNone, kCore, kNuma };  // kByCores: as kCore with --cores-per-pe, otherwise as kNone

struct Options {
    // The PEs that read standard input, where no single one does.
    static constexpr int kAllRead = -1, kNoneReads = -2;

    int pes = 0;                    // of all programs
    std::vector<Program> programs;  // at least one
    std::vector<Host> hosts;        // in the order in which they are filled; empty: this machine
    std::string scheduler;          // that has told the hosts; empty: the user has
    int pes_per_host = 0;           // --ppn; 0: not given
    double timeout_s = 0;           // 0: none
    uint64_t hang_s = 0;            // HEDDLE_HANG_S of the first program; 0: no notice
    double grace_s = 0.5;           // from the first signal to SIGKILL
    bool has_grace = false;         // --grace was given
    int cores_per_pe = 0;           // 0: not given
    Bind bind = Bind::kByCores;
    bool report_bindings = false;
    bool tag_output = false;
    bool verbose = false;
    int reader = 0;          // of standard input: a PE, kAllRead or kNoneReads
    std::string output_dir;  // of the PEs' files; empty: output is forwarded
    int status_of = 0;       // --status JOB, --top JOB; 0: the only one
    std::string prefix;      // of the installation that the PEs use; empty: whatever they find

    // Chaos (chaos.h).
    bool chaos = false;              // --chaos or --chaos-runs was given
    uint64_t chaos_seed = 0;         // HEDDLE_CHAOS of all PEs; 0: without chaos
    int chaos_runs = 0;              // the number of jobs that --chaos-runs asks for; 0: not given
    bool compare_output = false;     // --compare-output was given
    std::vector<std::string> words;  // the command line, oshrun's name first, without the options about chaos

    bool is_bound() const { return bind == Bind::kByCores ? cores_per_pe > 0 : bind != Bind::kNone; }

    const Program& program_of(int pe) const {
        size_t at = 0;
        while (pe >= programs[at].pes) pe -= programs[at++].pes;
        return programs[at];
    }
};

// kAnswered: --help or --version, printed; kStatus: --status; kTop: --top; kBad: one line on stderr.
enum class Parsed { kRun, kAnswered, kStatus, kTop, kBad };

// Parses up to the first word that is no option: a program's options are its own, up to a word ":". Overwrites these
// words by null, as the ends of programs' arguments.
Parsed parse_options(int argc, char** argv, Options* options);

}  // namespace heddle::launcher
