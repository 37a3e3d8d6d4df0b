// A job: starts the PEs, watches them, ends them. Threads: oshrun's only one, which sleeps in poll and never blocks
// elsewhere once the PEs run. Only the job decides the exit status.
//
//     start -> kRunning -> kTerminating -> kKilling -> kGone
//
//     kRunning      until all PEs have ended well or there is a reason to end the job; the first one decides status
//     kTerminating  every child, adopted orphans included, has got one signal and has the grace period (--grace)
//     kKilling      every child gets SIGKILL, repeatedly, because deaths produce further orphans
//     kGone         no child is left, or some could not be killed, which was reported; pipes are still forwarded
#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

#include "bootstrap/job_page.h"
#include "bootstrap/status_report.h"
#include "input.h"
#include "options.h"
#include "output.h"
#include "start.h"

namespace heddle::launcher {

class Job {
  public:
    // bindings: the CPUs of each PE; empty: none is bound.
    Job(const Options& options, const std::vector<CpuList>& bindings) : options_(options), bindings_(bindings) {}

    // Returns oshrun's exit status, with no process of the job left.
    int run();

  private:
    enum class Phase { kRunning, kTerminating, kKilling, kGone };

    struct Pe {
        pid_t pid = 0;  // 0: not started
        bool ended = false;
        bool never_joined = false;  // ended with status 0 without shmem_init
    };

    bool prepare();
    bool make_page();
    void set_signals();
    bool start_all();

    void wait_for_events();
    void take_signals();
    void forward(int signal, bool already_sent);
    pid_t process_of(size_t pe) const;
    void reap();
    void judge(int pe, int wait_status);
    void judge_races();
    void check_page();
    void check_absent();
    void check_time();
    void check_hang();
    bootstrap::StatusSource status_source() const;
    void tell_places(const std::string& heading);
    void check_output();

    void end(int status, int signal = SIGTERM, bool already_sent = false);
    void advance_end();
    void sweep();
    void forward_rest();

    void blame(int pe, const std::string& what);
    void complain(const std::string& text);
    int index_of(pid_t pid) const;
    std::string name_of(int pe) const;
    int alive_besides(int pe) const;
    bool fail(const std::string& text, int status);

    const Options& options_;
    const std::vector<CpuList>& bindings_;
    Output output_;
    Input input_;
    Starter starter_;
    Inherited inherited_ = {};
    int job_fd_ = -1;
    bootstrap::JobPage* page_ = nullptr;
    bootstrap::PeRecord* records_ = nullptr;
    int signal_fd_ = -1;

    std::vector<Pe> pes_;
    int alive_ = 0;
    int never_joined_ = 0;          // PEs that ended with status 0 without shmem_init
    std::vector<pid_t> not_ours_;   // children that this process had before it became oshrun
    std::vector<pid_t> signalled_;  // orphans that have got their first signal

    Phase phase_ = Phase::kRunning;
    int status_ = 0;
    int end_signal_ = SIGTERM;
    int requester_ = -1;        // the PE that asked for the end: it may still flush its output during the grace period
    bool interrupted_ = false;  // a signal ends the job: do not wait long for a blocked reader of the output
    uint64_t now_ns_ = 0;       // time of this round
    uint64_t timeout_ns_ = UINT64_MAX;
    uint64_t next_hang_look_ns_ = 0;  // UINT64_MAX: the notice of HEDDLE_HANG_S is out, or not wanted
    uint64_t kill_ns_ = 0;
    uint64_t give_up_ns_ = 0;
    uint64_t next_sweep_ns_ = 0;
};

}  // namespace heddle::launcher
