#include "bootstrap/launch_environment.h"

#include "os/process.h"

#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

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
    {"PMI_SIZE", 1, "a launcher that speaks PMI", kUseOshrun},
    {"MPI_LOCALNRANKS", 1, "MPICH's or Intel MPI's mpiexec", kUseOshrun},
    {"WORLD_SIZE", 1, "torchrun, or a launcher like it,", "HEDDLE_LAUNCH=env", is_of_torchrun},
};

// A launcher that starts several processes changes at least one of these, or of the claims, for each of them.
constexpr const char* kOfLaunch[] = {
    "PMIX_NAMESPACE",  "PMIX_RANK",      "PMI_FD",
    "PMI_PORT",        "PMI_RANK",       "PMI_ID",
    "PMI_JOBID",       "SLURM_JOB_ID",   "SLURM_STEP_ID",
    "SLURM_PROCID",    "SLURM_TASK_PID", "FLUX_JOB_ID",
    "FLUX_TASK_RANK",  "PALS_APID",      "OMPI_COMM_WORLD_RANK",
    "MPI_LOCALRANKID", "RANK",           "LOCAL_RANK",
    "MASTER_ADDR",     "MASTER_PORT",    "TORCHELASTIC_RESTART_COUNT",
};

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
    for (const Claim& claim : kClaims) {
        const long value = env_number(claim.variable);
        if (value <= claim.most_alone || (claim.concerns_this && !claim.concerns_this()))
            continue;
        snprintf(error, error_bytes,
                 "%s has started this process as one of several (%s=%ld), and does not tell how to find the others: "
                 "right would be %s, or HEDDLE_LAUNCH=alone for a job of one PE for each process",
                 claim.launcher, claim.variable, value, claim.cure);
        return true;
    }
    return false;
}

}  // namespace heddle::bootstrap
