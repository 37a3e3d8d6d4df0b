// Fiber: work with a stack of its own. It runs on the thread that resumes it until it has to wait, and goes on later,
// on that thread or another one: so what is written as if it blocked can be carried on by whoever has a moment.
//
// Threads: one at a time resumes a fiber; resume and the next one are ordered by the caller. Within a fiber an address
// of something thread-local is not to be kept across a wait.
// Cost: a resume and the return from it take about 40 instructions, no system call. A stack takes the pages that it has
// touched; one that overflows ends the PE at its guard page.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace heddle::progress {

// The modes of floating-point arithmetic, such as rounding, that the calling thread or fiber has.
uint64_t arithmetic_modes();

class Fiber {
  public:
    static constexpr size_t kStackBytes = 512 * 1024;  // beside the guard page

    using Work = void (*)(void* argument);
    using Ready = bool (*)(void* condition);

    Fiber() = default;
    ~Fiber();
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;

    // The one that the calling thread runs; null: none.
    static Fiber* current();

    // Gives the fiber, which has nothing to do, work for the next resume, to begin in these modes of arithmetic. False
    // when there is no memory for a stack.
    bool start(Work work, void* argument, uint64_t modes);
    bool is_over() const { return work_ == nullptr; }
    // Of a fiber that has work: whether it can go on; asked before each resume.
    bool is_ready();
    // Runs the work until it waits, or is over.
    void resume();

    // In the fiber: returns when ready() has returned true, once. Whoever looks after the fiber calls it.
    template <class Condition>
    void wait(Condition& ready) {
        if (!ready())
            leave([](void* it) { return (*static_cast<Condition*>(it))(); }, &ready);
    }

    // The step of a collective that it waits in (AtStep); 0: none. Relaxed: whoever reads another's looks again.
    uint64_t step() const { return step_.load(std::memory_order_relaxed); }
    uint64_t exchange_step(uint64_t step) {
        const uint64_t before = step_.load(std::memory_order_relaxed);  // the fiber alone writes
        step_.store(step, std::memory_order_relaxed);
        return before;
    }

  private:
    void leave(Ready ready, void* condition);
    void run();
    void switch_back();
    bool make_stack();
    static void enter();

    char* stack_ = nullptr;  // with its guard page
    void* stack_pointer_ = nullptr;
    void* resumer_ = nullptr;  // the stack pointer of who has resumed it
    Work work_ = nullptr;
    void* argument_ = nullptr;
    Ready ready_ = nullptr;  // null: it can go on
    void* condition_ = nullptr;
    std::atomic<uint64_t> step_{0};
    // What a sanitizer knows the stacks by.
    void* own_mark_ = nullptr;
    void* resumer_mark_ = nullptr;
    const void* resumer_stack_ = nullptr;
    size_t resumer_bytes_ = 0;
};

}  // namespace heddle::progress
