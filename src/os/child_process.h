// Child process: a program that this one starts and watches, another launcher or oshrun. It gets SIGTERM when this
// process is killed. Threads: one.
#pragma once

#include <sys/types.h>
#include <csignal>
#include <cstdint>
#include <initializer_list>

namespace heddle::os {

// path, arguments, environment: as for execve. program: this process's name, for messages.
struct ChildCommand {
    const char* program;
    const char* path;
    char* const* arguments;
    char* const* environment;
    bool reads_input = true;  // this process's standard input; false: none
    // Descriptors that become the child's standard streams; -1: this process's own one.
    int streams[3] = {-1, -1, -1};
};

class ChildProcess {
  public:
    // Blocks SIGCHLD and the signals for next_signal; one that is ignored stays so (nohup).
    explicit ChildProcess(std::initializer_list<int> signals);

    // False when the child cannot be run. A line on stderr then says so, from the child where it is exec that fails,
    // and the child ends with status 1. Once a child has ended, another one may be started.
    bool start(const ChildCommand& command);
    // *status: as waitpid's.
    bool has_ended(int* status);
    // Waits for a signal until then. Its number; 0: none has come. *from_terminal: the terminal has sent it to the
    // child, too.
    int next_signal(uint64_t end_ns, bool* from_terminal);
    void send(int signal) const;

  private:
    sigset_t signals_, inherited_;  // the mask before
    pid_t pid_ = -1;
};

}  // namespace heddle::os
