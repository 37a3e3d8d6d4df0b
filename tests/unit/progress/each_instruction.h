// What another thread may do between any two instructions of a piece of code, and how many these are: the processor stops
// the code behind each instruction. Meanwhile a callable runs on a thread of its own, or the instruction is counted. Only where the processor can: x86-64, and no
// sanitizer, whose own instructions would be stopped, too.
#pragma once

#include <csignal>
#include <functional>
#include <semaphore>
#include <thread>
#include <utility>

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define HEDDLE_STOPS_AT_INSTRUCTIONS 1
#else
#define HEDDLE_STOPS_AT_INSTRUCTIONS 0
#endif

namespace heddle::progress {

#if HEDDLE_STOPS_AT_INSTRUCTIONS

// The kernel sends SIGTRAP behind each instruction of code().
template <class Code>
void stop_at_each(Code code) {
    asm volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");  // the trap flag
    code();
    asm volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
}

// How many instructions this thread executes in code(), without the kernel's.
template <class Code>
long instructions_of(Code code) {
    static volatile long count;
    struct sigaction action = {}, before;
    action.sa_handler = [](int) { count = count + 1; };
    sigaction(SIGTRAP, &action, &before);
    count = 0;
    stop_at_each(code);
    sigaction(SIGTRAP, &before, nullptr);
    return count;
}

class EachInstruction {
  public:
    // meanwhile() runs on a thread that make(body) starts.
    template <class MakeThread>
    EachInstruction(MakeThread make, std::function<void()> meanwhile)
        : meanwhile_(std::move(meanwhile)), other_(make([this] {
              for (go_.acquire(); !over_; go_.acquire()) {
                  meanwhile_();
                  done_.release();
              }
          })) {
        current_ = this;
        struct sigaction action = {};
        action.sa_handler = [](int) {
            current_->go_.release();
            current_->done_.acquire();
        };
        sigaction(SIGTRAP, &action, &before_);
    }
    ~EachInstruction() {
        sigaction(SIGTRAP, &before_, nullptr);
        over_ = true;
        go_.release();
        other_.join();
    }
    EachInstruction(const EachInstruction&) = delete;
    EachInstruction& operator=(const EachInstruction&) = delete;

    // Runs code() so. The code waits for no other thread.
    template <class Code>
    void run(Code code) {
        stop_at_each(code);
    }

  private:
    static inline EachInstruction* current_ = nullptr;
    const std::function<void()> meanwhile_;
    std::binary_semaphore go_{0}, done_{0};
    bool over_ = false;
    struct sigaction before_ = {};
    std::thread other_;  // last: it uses the others
};

#endif

}  // namespace heddle::progress
