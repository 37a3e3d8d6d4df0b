// Starting PEs: finds the program, then one vfork and exec per PE. Threads: one. Ends no process and prints nothing:
// errors are returned.
//
// A PE is in the launcher's process group, for the terminal's job control. It has the signal mask, dispositions and
// file limit with which the launcher was started. It dies when the launcher dies, by PR_SET_PDEATHSIG; a process that
// calls shmem_init, at any depth, by the lifeline pipe. It inherits the job's memory and the lifeline, and no other
// descriptor of the launcher.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

#include "cores.h"
#include "environment.h"
#include "options.h"

namespace heddle::launcher {

// Searches `name` in `places` (PATH; null: the usual ones) as execvp does, but does not run a shell for files that the
// kernel cannot run. Returns 0 or an errno.
int find_program(const std::string& name, const char* places, std::string* path);

// What the launcher changes for itself and restores for the PEs.
struct Inherited {
    sigset_t signal_mask;
    struct sigaction on_sigpipe;
    rlimit files;
};

struct Started {
    pid_t pid = 0;
    int output = -1;  // read ends; -1: output goes to files
    int errors = -1;
    int input = -1;  // write end; -1: the PE reads the launcher's input, or nothing
};

struct StartFailure {
    int status = 0;  // 0: started; otherwise the launcher's exit status
    std::string message;
};

class Starter {
  public:
    // Makes the lifeline, and finds the programs. job_fd: the node's memory. token: that of its job page.
    StartFailure prepare(const Options& options, const std::vector<CpuList>& bindings, const Inherited& inherited,
                         int job_fd, uint64_t token);

    // Returns once the PE runs the program.
    StartFailure start(int pe, Started* started);

  private:
    struct Ends;   // of the pipes of the PE that is being started
    struct Part {  // the PEs of one program
        Program program;
        std::string path;
        Environment environment;
    };
    enum class Stage : int { kPipe, kFork, kFile, kBind, kFolder, kExec };
    struct Failure {  // of a child that could not become a PE, written by the child itself
        Stage stage;
        int error;
    };

    bool open_ends(int pe, Ends* ends, Stage* stage) const;
    Part& part_of(int pe);
    StartFailure explain(Stage stage, int error, int pe) const;
    StartFailure explain_start(const Part& part, int error) const;
    // Runs in the child of vfork: changes no memory but *failure, and leaves by exec or _exit.
    [[noreturn, gnu::noinline]] void become_pe(int pe, const Part& part, char** environment, const Ends& ends,
                                               Failure* failure) const;

    const Options* options_ = nullptr;
    Inherited inherited_ = {};
    std::vector<Part> parts_;
    int job_fd_ = -1;
    int lifeline_[2] = {-1, -1};  // the write end is open in this process only, as long as the process lives
    bool has_terminal_ = false;   // this process has a controlling one
    int null_fd_ = -1;
    pid_t launcher_ = 0;
    const std::vector<CpuList>* bindings_ = nullptr;  // the CPUs of each PE; empty: none is bound
};

}  // namespace heddle::launcher
