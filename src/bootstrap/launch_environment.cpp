#include "bootstrap/launch_environment.h"

#include "base/error.h"
#include "os/process.h"
#include "os/process_table.h"

#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>
#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

namespace heddle::bootstrap {

namespace {

constexpr const char* kEnvJoined = "HEDDLE_JOINED";  // HASH:INODE, see Mark

// True for a program that somebody has started by hand: a shell with job control gives it a process group of its own.
bool is_of_interactive_shell() {
    return isatty(STDIN_FILENO) && tcgetsid(STDIN_FILENO) == getsid(0) && getpgrp() != getsid(0);
}

// salloc's shell on a node of the allocation, which Slurm runs as a step of its own (slurm.conf, use_interactive_step).
constexpr long kInteractiveStep = 4294967290;

bool is_of_slurm_step() {
    const long step = env_number("SLURM_STEP_ID");
    return step >= 0 && step != kInteractiveStep && !is_of_interactive_shell();
}

// A variable that tells how many processes a launcher has started.
struct Claim {
    const char* variable;
    long most_alone;  // the greatest value of a launch of one process
    const char* launcher;
    const char* cure;
    bool (*concerns_this)() = nullptr;  // null: always
};
// WORLD_SIZE alone may be anything.
bool is_of_torchrun() {
    return env_number("RANK") >= 0 && getenv("MASTER_ADDR") && getenv("MASTER_PORT");
}

constexpr const char* kUseOshrun = "oshrun, or mpirun of Open MPI 4 or later";
constexpr Claim kClaims[] = {
    {"SLURM_STEP_NUM_TASKS", 1, "srun", "srun --mpi=pmix, srun --mpi=pmi2, or oshrun", is_of_slurm_step},
    {"OMPI_COMM_WORLD_SIZE", 1, "Open MPI's mpirun", kUseOshrun},
    {"FLUX_JOB_SIZE", 1, "flux", "flux run -o pmi=simple, or oshrun"},
    {"PALS_LOCAL_SIZE", 1, "PALS", "mpiexec --pmi=pmi, or oshrun"},
    {"PALS_RANKID", 0, "PALS", "mpiexec --pmi=pmi, or oshrun"},
    {"JSM_NAMESPACE_SIZE", 1, "jsrun", kUseOshrun},
    {"ALPS_APP_PE", 0, "aprun", kUseOshrun},
    {"MV2_COMM_WORLD_SIZE", 1, "MVAPICH's mpirun_rsh", kUseOshrun},
    {"PMI_SIZE", 1, "a launcher that speaks PMI", kUseOshrun},
    {"MPI_LOCALNRANKS", 1, "MPICH's or Intel MPI's mpiexec", kUseOshrun},
    {"WORLD_SIZE", 1, "torchrun, or a launcher like it,", "HEDDLE_LAUNCH=env", is_of_torchrun},
};

// A launcher that starts several processes changes at least one of these, or of the claims, for each of them.
constexpr const char* kOfLaunch[] = {
    "PMIX_NAMESPACE",     "PMIX_RANK",      "PMI_FD",
    "PMI_PORT",           "PMI_RANK",       "PMI_ID",
    "PMI_JOBID",          "SLURM_JOB_ID",   "SLURM_STEP_ID",
    "SLURM_PROCID",       "SLURM_TASK_PID", "FLUX_JOB_ID",
    "FLUX_TASK_RANK",     "PALS_APID",      "OMPI_COMM_WORLD_RANK",
    "MPI_LOCALRANKID",    "RANK",           "LOCAL_RANK",
    "MASTER_ADDR",        "MASTER_PORT",    "TORCHELASTIC_RESTART_COUNT",
    "JSM_NAMESPACE_RANK",
};

// The numbers that launchers give to their processes.
constexpr const char* kRanks[] = {
    "PMIX_RANK",      "PMI_RANK",       "PMI_ID", "SLURM_PROCID",       "OMPI_COMM_WORLD_RANK",
    "PALS_RANKID",    "FLUX_TASK_RANK", "RANK",   "JSM_NAMESPACE_RANK", "ALPS_APP_PE",
    "MPI_LOCALRANKID"};

// The claim that the environment makes; null: none.
const Claim* find_claim(long* value) {
    for (const Claim& claim : kClaims) {
        *value = env_number(claim.variable);
        if (*value > claim.most_alone && (!claim.concerns_this || claim.concerns_this()))
            return &claim;
    }
    return nullptr;
}

// Processes whose children are those that a launcher starts, by the names that the kernel gives them.
constexpr const char* kStarters[] = {"oshrun",  "mpirun", "mpiexec",         "orterun",    "orted",
                                     "prterun", "prted",  "hydra_pmi_proxy", "slurmstepd", "flux-shell"};

// A process above this one; 0: none.
struct Ancestor {
    int pid = 0;
    os::ProcessEntry entry;
};

// The nearest such process above this one; none where a PE stands between them. *unknown: the nearest process
// between them that may be a PE or not.
Ancestor starter_above(Ancestor* unknown) {
    Ancestor it;
    if (is_of_interactive_shell())
        return {};
    for (it.pid = os::visible_parent(); it.pid > 1 && os::read_process(it.pid, &it.entry); it.pid = it.entry.parent) {
        for (const char* const name : kStarters)
            if (strcmp(it.entry.name, name) == 0)
                return it;
        const os::Answer is_pe = os::maps_file(it.pid, "/libheddle.so");
        if (is_pe == os::Answer::kYes)
            return {};
        if (is_pe == os::Answer::kUntold && unknown->pid == 0)
            *unknown = it;
    }
    return {};
}

// The parent that /proc hides (hidepid), as it does another user's process; 0: it shows the parent.
int hidden_parent() {
    os::ProcessEntry entry;
    const int parent = os::visible_parent();
    const bool is_hidden = parent > 1 && !os::read_process(parent, &entry) && os::visible_parent() == parent;
    return is_hidden && !is_of_interactive_shell() ? parent : 0;
}

bool has_variables_of_launch() {
    return std::any_of(std::begin(kOfLaunch), std::end(kOfLaunch), [](const char* name) { return getenv(name); });
}

// What identifies a launch. Two launches by a process manager may agree in all variables, but not in its socket.
struct Mark {
    uint64_t hash;   // FNV-1a of the values of kOfLaunch and kClaims
    uint64_t inode;  // of the process manager's socket; 0: none
};

Mark mark_of_environment() {
    uint64_t hash = os::kHashOfNothing;
    const auto add_value = [&](const char* name) {
        const char* const text = getenv(name);
        hash = os::hash_of("\n", os::hash_of(text ? text : "", hash));
    };
    for (const char* const name : kOfLaunch) add_value(name);
    for (const Claim& claim : kClaims) add_value(claim.variable);
    struct stat file;
    const int fd = inherited_pmi_socket();
    return {hash, fd >= 0 && fstat(fd, &file) == 0 ? static_cast<uint64_t>(file.st_ino) : 0};
}

// The value of the first of the two variables that is not empty; null: neither is set, or both are empty.
const char* either_value(const char* name, const char* old_name) {
    const char* const value = getenv(name);
    if (value && *value)
        return value;
    const char* const old_value = getenv(old_name);
    return old_value && *old_value ? old_value : nullptr;
}

}  // namespace

long env_number(const char* name) {
    const char* const text = getenv(name);
    if (!text || !*text)
        return -1;
    char* end = nullptr;
    const long number = strtol(text, &end, 10);
    return *end == '\0' && number >= 0 ? number : -1;
}

bool read_env_number(const char* name, long low, long high, long* value, const Reason& reason) {
    *value = env_number(name);
    if (*value >= low && *value <= high)
        return true;
    const char* const text = getenv(name);
    return reason.fail("%s%s%s: right would be a number from %ld to %ld", name, text ? "=" : " is not set",
                       text ? text : "", low, high);
}

const char* slurm_hosts() {
    return either_value("SLURM_JOB_ID", "SLURM_JOBID") ? either_value("SLURM_JOB_NODELIST", "SLURM_NODELIST") : nullptr;
}

bool has_flux() {
    return getenv("FLUX_URI");
}

int inherited_pmi_socket() {
    const long fd = env_number("PMI_FD");
    struct stat file;
    return fd >= 0 && fd < (1 << 20) && fstat(static_cast<int>(fd), &file) == 0 && S_ISSOCK(file.st_mode)
               ? static_cast<int>(fd)
               : -1;
}

bool is_started_by_pe() {
    const char* const text = getenv(kEnvJoined);
    Mark left;
    if (!text || sscanf(text, "%" SCNx64 ":%" SCNu64, &left.hash, &left.inode) != 2)
        return false;
    const Mark found = mark_of_environment();
    return found.hash == left.hash && (found.inode == 0 || found.inode == left.inode);
}

void mark_environment() {
    const Mark mark = mark_of_environment();
    char text[64];
    snprintf(text, sizeof text, "%" PRIx64 ":%" PRIu64, mark.hash, mark.inode);
    setenv(kEnvJoined, text, 1);
}

bool claims_several_pes(char* error, size_t error_bytes) {
    constexpr const char* kAlone = "HEDDLE_LAUNCH=alone for a job of one PE for each process";
    long value;
    if (const Claim* const claim = find_claim(&value)) {
        snprintf(error, error_bytes,
                 "%s has started this process as one of several (%s=%ld), and does not tell how to find the others: "
                 "right would be %s, or %s",
                 claim->launcher, claim->variable, value, claim->cure, kAlone);
        return true;
    }
    Ancestor unknown;
    const Ancestor starter = starter_above(&unknown);
    if (starter.pid == 0) {
        if (const int parent = hidden_parent(); parent != 0 && !has_variables_of_launch())
            base::report("launcher",
                         "/proc hides the process that has started this one (%d), and a launcher above it: this is a "
                         "job of one PE (HEDDLE_LAUNCH=alone silences this)",
                         parent);
        return false;
    }
    constexpr const char* kLost = "the variables by which it tells so were lost on the way here (sudo, env -i?)";
    char unless[128] = "";
    if (unknown.pid != 0)
        snprintf(unless, sizeof unless,
                 ", unless a PE is between the two: the mappings of %s (process %d) may not be read",
                 unknown.entry.name, unknown.pid);
    const bool is_told_alone = has_variables_of_launch();  // which may be those of a launch around the lost one
    const bool is_one_of_several = os::count_children(starter.pid) > 1;
    if (is_one_of_several && !is_told_alone) {
        snprintf(
            error, error_bytes,
            "%s (process %d) has started this process as one of several, and %s%s: right would be a way that keeps "
            "them, or %s",
            starter.entry.name, starter.pid, kLost, unless, kAlone);
        return true;
    }
    if (is_one_of_several || !is_told_alone)
        base::report(
            "launcher",
            "%s (process %d) has started this process, perhaps as one of several, and %s%s: it is a job of one "
            "PE (HEDDLE_LAUNCH=alone silences this)",
            starter.entry.name, starter.pid, kLost, unless);
    return false;
}

bool tells_for_several(char* launch, size_t launch_bytes) {
    if (is_started_by_pe())
        return false;
    long value;
    const Claim* const claim = find_claim(&value);
    if (!claim && getenv("PMIX_NAMESPACE") && env_number("PMIX_RANK") == 1) {  // prterun tells no number of processes
        snprintf(launch, launch_bytes, "a launcher that speaks PMIx (PMIX_RANK=1)");
        return true;
    }
    if (!claim ||
        std::any_of(std::begin(kRanks), std::end(kRanks), [](const char* name) { return env_number(name) > 0; }))
        return false;
    snprintf(launch, launch_bytes, "%s (%s=%ld)", claim->launcher, claim->variable, value);
    return true;
}

}  // namespace heddle::bootstrap
