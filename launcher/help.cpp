#include "help.h"

#include <cstdio>

#include "bootstrap/job_page.h"

namespace heddle::launcher {

namespace {

constexpr const char* kText =
    "Usage: oshrun -n N [options] program [arguments] [: -n M [options] program [arguments]]...\n"
    "Runs N PEs of an OpenSHMEM program, on this machine or on several hosts, and ends them together.\n"
    "\n"
    "  -n N, -np N, --np N  number of PEs, 1 to %d\n"
    "  -x, --env NAME[=VALUE]  set a variable for the PEs, or pass it on to all hosts; may be repeated\n"
    "  --wdir DIR           run the program in this directory\n"
    "  --prefix DIR         take libraries and programs of this installation first: DIR/lib, DIR/bin\n"
    "  --stdin all|none|N   the PEs that read oshrun's standard input (0); the others read nothing\n"
    "  --output-dir DIR     write the output of each PE to DIR/pe.N.out and DIR/pe.N.err, and none here\n"
    "  --tag-output         begin each line of output with [pe]\n"
    "  --timeout SECONDS    end the job after this time (decimals allowed) with status 124, and tell where each PE "
    "waits\n"
    "  --chaos[=SEED]       deliver late and out of order, as far as the standard allows; without SEED one is drawn. "
    "The\n"
    "                       last line tells the seed\n"
    "  --chaos-runs N       run N jobs, with the seeds SEED, SEED+1, ..., up to the first that fails (status, "
    "--timeout), and\n"
    "                       show its output and the command that repeats it\n"
    "  --compare-output     with --chaos-runs: a job fails, too, where the lines of its stdout, in any order, differ "
    "from\n"
    "                       those of a job without chaos, which runs first\n"
    "  --profile[=FILE]     tell at the end where the program called, how long that took, and what to change;\n"
    "                       FILE (heddle-profile.json) gets all of it as JSON\n"
    "  --trace FILE         write a time line of all PEs and threads, which Perfetto (ui.perfetto.dev) opens\n"
    "  --status [PID]       run nothing; tell where the PEs of a running job are: of that oshrun or PE, or of the "
    "only\n"
    "                       job of this user on this host\n"
    "  --top [PID]          run nothing; show in the terminal, each second, what the PEs of a running job do, until q\n"
    "  --grace SECONDS      when the job ends early, let PEs end by themselves for this time before they are killed "
    "(0.5)\n"
    "  -c, --cores-per-pe N  bind each PE and its threads to N cores of one NUMA node, as far as there are any; "
    "OpenMP\n"
    "                       starts N threads, unless OMP_NUM_THREADS is set\n"
    "  --bind core|numa|none  bind each PE to its cores (one without -c), to all cores of their NUMA nodes, or not; "
    "the\n"
    "                       default is core with -c, otherwise none\n"
    "  --report-bindings    tell the cores of each PE\n"
    "  --hosts A:N,B:N      run on these hosts (also --host, -H), filling one after the other; a host without a number "
    "takes\n"
    "                       one PE, or as many as --ppn says\n"
    "  --hostfile FILE      the same, a host in each line (a, a:2 or a slots=2); # begins a comment\n"
    "  --ppn N, -N N        number of PEs on a host; the number of all PEs unless -n tells it\n"
    "  -v, --verbose        tell what is started, and by what\n"
    "  -h, --help, --version  print this, or the version\n"
    "\n"
    "Several programs: the word ':' ends a program's arguments, and the PEs of the next one follow in number. Only -n, "
    "-x\n"
    "and --wdir stand behind a ':'; each holds for its program. The other options hold for the whole job.\n"
    "\n"
    "Threads: without -c, OMP_NUM_THREADS is set to an equal share of the usable cores, unless it is set. Where PEs "
    "and\n"
    "their threads are more than the cores, OMP_WAIT_POLICY is set to passive, unless it is set.\n"
    "\n"
    "Several hosts: the PEs are started by the first of prterun, mpirun (Open MPI), srun, hydra's mpiexec and flux in\n"
    "PATH that works. Settings (HEDDLE_*, SHMEM_*, SMA_*, UCX_*) and -x reach all hosts; input, output, tags and "
    "status\n"
    "are that launcher's. In an allocation by Slurm or Flux, its hosts are the default of --hosts, and all of its PEs "
    "that\n"
    "of -n; srun or flux then comes first.\n"
    "\n"
    "On this machine:\n"
    "Output: forwarded by whole lines; lines of different PEs are never mixed. A line longer than 1 MiB may be cut "
    "where\n"
    "another PE writes. On a terminal, a line without its end (a prompt) appears after 0.1 s.\n"
    "The job ends when all PEs have ended, when one fails (nonzero status, signal, _exit ahead of shmem_finalize), "
    "with\n"
    "shmem_global_exit, and with SIGINT, SIGTERM or SIGHUP to oshrun, which tells where the PEs are if one waits for\n"
    "long: whatever the PEs started and left ends too, by that signal or SIGTERM, and after --grace by SIGKILL.\n"
    "SIGQUIT (Ctrl-\\) tells where the PEs are, and the job goes on; from a terminal, PEs begin with SIGQUIT ignored.\n"
    "SIGUSR1, SIGUSR2, SIGWINCH and SIGCONT go on to the PEs; SIGTSTP stops the whole job. When all PEs have waited\n"
    "for HEDDLE_HANG_S seconds (60), a notice tells where they are.\n"
    "Status: 0; or that of the first PE that failed (128 + signal when a signal ended it); 1 when Heddle found an "
    "error;\n"
    "2 bad input; 124 timeout; 126 the program cannot be run; 127 no such program; 128 + signal when oshrun got one.\n";

}  // namespace

void print_help() {
    printf(kText, bootstrap::kMaxPes);
}

}  // namespace heddle::launcher
