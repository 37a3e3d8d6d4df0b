// Starting PEs: finds the program, then one fork and exec per PE. One thread; ends nothing and prints nothing: what
// went wrong is handed back.
//
// A PE is in the launcher's process group (terminal job control), has the signal mask, dispositions and file limit that
// the launcher was started with, dies when the launcher dies (PR_SET_PDEATHSIG; the lifeline pipe for those that call
// shmem_init, at any depth), and inherits no descriptor of the launcher but the job's memory and the lifeline.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

#include "options.h"

namespace heddle::launcher {

// Looks `name` up as execvp does, without running a shell for what the kernel cannot run. Returns 0 or an errno.
int find_program(const std::string& name, std::string* path);

// What the launcher changes for itself and gives back to the PEs.
struct Inherited {
    sigset_t signal_mask;
    struct sigaction on_sigpipe;
    rlimit files;
};

struct Started {
    pid_t pid = 0;
    int output = -1;  // read ends, not blocking
    int errors = -1;
};

struct StartFailure {
    int status = 0;  // 0: started; else the exit status for the launcher
    std::string message;
};

class Starter {
  public:
    // job_fd: the node's memory, which has this token. Makes the lifeline; applies --env to this process, which the PEs
    // inherit.
    StartFailure prepare(const Options& options, const Inherited& inherited, int job_fd, uint64_t token);

    // Returns once the PE runs the program. Cost: about half a millisecond.
    StartFailure start(int pe, Started* started);

  private:
    struct Ends;  // of the pipes to the PE being started
    enum class Stage : int { kPipe, kFork, kBind, kExec };
    struct Failure {  // what a child that could not become a PE writes to the launcher
        Stage stage;
        int error;
    };

    StartFailure explain(Stage stage, int error, int pe) const;
    [[noreturn]] void become_pe(int pe, const Ends& ends) const;

    const Options* options_ = nullptr;
    Inherited inherited_ = {};
    std::string path_;
    int job_fd_ = -1;
    int lifeline_[2] = {-1, -1};  // the write end stays open, in this process only, as long as it lives
    int null_fd_ = -1;
    pid_t launcher_ = 0;
    std::vector<int> cores_;  // that this process may use; filled for --bind core
};

}  // namespace heddle::launcher
