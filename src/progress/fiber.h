// Fiber: work with a stack of its own. The work runs on the thread that resumes the fiber until it has to wait, and
// continues later on that thread or another. Code that is written as if it blocked thus needs no thread of its own.
//
// Threads: one thread at a time resumes a fiber, and the caller orders one resume before the next. Code in a fiber must
// not keep the address of a thread-local object across a wait. Cost: a resume and the return from it take about 40
// instructions (heddle_switch_stack, counted), no system call. A stack takes the pages that it has touched; one that
// overflows ends the PE at its guard page.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace heddle::progress {

// The modes of floating-point arithmetic, such as rounding, of the calling thread or fiber.
uint64_t arithmetic_modes();

class Fiber {
  public:
    static constexpr size_t kStackBytes = 512 * 1024;  // without the guard page

    using Work = void (*)(void* argument);
    using Ready = bool (*)(void* condition);

    Fiber() = default;
    ~Fiber();
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;

    // The fiber that the calling thread runs; null: none.
    static Fiber* current();

    // Gives an idle fiber work for the next resume, which begins in these modes of arithmetic. False when there is no
    // memory for a stack.
    bool start(Work work, void* argument, uint64_t modes);
    bool is_over() const { return work_ == nullptr; }
    // For a fiber with work: true when it can continue. To be asked before each resume.
    bool is_ready();
    // Runs the work until it waits or ends.
    void resume();

    // Within the fiber: returns when ready() has returned true once. The thread that drives the fiber calls ready.
    template <class Condition>
    void wait(Condition& ready) {
        if (!ready())
            leave([](void* it) { return (*static_cast<Condition*>(it))(); }, &ready);
    }

    // The step of a collective in which the fiber waits (AtStep); 0: none. Relaxed: a thread that reads another's step
    // reads it again later.
    uint64_t step() const { return step_.load(std::memory_order_relaxed); }
    uint64_t exchange_step(uint64_t step) {
        const uint64_t before = step_.load(std::memory_order_relaxed);  // only the fiber writes
        step_.store(step, std::memory_order_relaxed);
        return before;
    }

  private:
    void leave(Ready ready, void* condition);
    void run();
    void switch_back();
    bool make_stack();
    static void enter();

    char* stack_ = nullptr;  // begins with its guard page
    void* stack_pointer_ = nullptr;
    void* resumer_ = nullptr;  // the stack pointer of the thread that has resumed the fiber
    Work work_ = nullptr;
    void* argument_ = nullptr;
    Ready ready_ = nullptr;  // null: the fiber can continue
    void* condition_ = nullptr;
    std::atomic<uint64_t> step_{0};
    // How a sanitizer identifies the stacks.
    void* own_mark_ = nullptr;
    void* resumer_mark_ = nullptr;
    const void* resumer_stack_ = nullptr;
    size_t resumer_bytes_ = 0;
};

}  // namespace heddle::progress
