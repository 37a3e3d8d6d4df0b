#include "progress/fiber.h"

#include "base/invariant.h"
#include "os/memfd.h"

#include <sys/mman.h>
#include <cstdint>
#include <cstring>

#if defined(__SANITIZE_ADDRESS__)
#define HEDDLE_ASAN
#include <sanitizer/common_interface_defs.h>
#elif defined(__SANITIZE_THREAD__)
#define HEDDLE_TSAN
#include <sanitizer/tsan_interface.h>
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HEDDLE_ASAN
#include <sanitizer/common_interface_defs.h>
#elif __has_feature(thread_sanitizer)
#define HEDDLE_TSAN
#include <sanitizer/tsan_interface.h>
#endif
#endif

// Pushes the callee-saved registers and the modes of floating-point arithmetic, and stores the stack pointer in *from.
// Then restores the registers and modes that an earlier call saved at `to`. With the modes saved, a result does not
// depend on the thread that resumes.
extern "C" void heddle_switch_stack(void** from, void* to) __attribute__((visibility("hidden")));

#if defined(__x86_64__)

asm(R"(
    .text
    .p2align 4
    .hidden heddle_switch_stack
    .globl heddle_switch_stack
    .type heddle_switch_stack, @function
heddle_switch_stack:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    subq $8, %rsp
    stmxcsr (%rsp)
    fnstcw 4(%rsp)
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    ldmxcsr (%rsp)
    fldcw 4(%rsp)
    addq $8, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size heddle_switch_stack, . - heddle_switch_stack
)");

#elif defined(__aarch64__)

asm(R"(
    .text
    .p2align 4
    .hidden heddle_switch_stack
    .globl heddle_switch_stack
    .type heddle_switch_stack, %function
heddle_switch_stack:
    sub sp, sp, #176
    stp x19, x20, [sp]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mrs x9, fpcr
    str x9, [sp, #160]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldr x9, [sp, #160]
    msr fpcr, x9
    ldp x19, x20, [sp]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #176
    ret
    .size heddle_switch_stack, . - heddle_switch_stack
)");

#endif

namespace heddle::progress {

namespace {

constinit thread_local Fiber* running = nullptr;

// A function of its own, so that the compiler computes the address of `running` again after each switch of stacks.
__attribute__((noinline)) void set_running(Fiber* fiber) {
    asm volatile("" ::: "memory");
    running = fiber;
}

// The words that heddle_switch_stack pops: where the modes are, where the entry address is, and how many.
#if defined(__x86_64__)
constexpr size_t kModes = 0, kEntry = 7, kWords = 9;  // the word behind the entry: its return address
#else
constexpr size_t kEntry = 11, kModes = 20, kWords = 22;
#endif

// The stack pointer of a stack that has never run: the first switch to it enters `entry`.
void* first_stack_pointer(char* end, void (*entry)()) {
    auto* const words = reinterpret_cast<uint64_t*>(end) - kWords;
    memset(words, 0, kWords * sizeof *words);
    words[kEntry] = reinterpret_cast<uint64_t>(entry);
    return words;
}

}  // namespace

uint64_t arithmetic_modes() {
    uint64_t modes = 0;
#if defined(__x86_64__)
    uint32_t vector;
    uint16_t x87;
    asm volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(vector), "=m"(x87));
    modes = uint64_t{x87} << 32 | vector;
#else
    asm volatile("mrs %0, fpcr" : "=r"(modes));
#endif
    return modes;
}

__attribute__((noinline)) Fiber* Fiber::current() {
    asm volatile("" ::: "memory");
    return running;
}

Fiber::~Fiber() {
#ifdef HEDDLE_TSAN
    if (own_mark_)
        __tsan_destroy_fiber(own_mark_);
#endif
    if (stack_)
        munmap(stack_, os::page_bytes() + kStackBytes);
}

bool Fiber::make_stack() {
    void* const memory = mmap(nullptr, os::page_bytes() + kStackBytes, PROT_NONE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    if (mprotect(static_cast<char*>(memory) + os::page_bytes(), kStackBytes, PROT_READ | PROT_WRITE) != 0) {
        munmap(memory, os::page_bytes() + kStackBytes);
        return false;
    }
    stack_ = static_cast<char*>(memory);
#ifdef HEDDLE_TSAN
    own_mark_ = __tsan_create_fiber(0);
#endif
    return true;
}

bool Fiber::start(Work work, void* argument, uint64_t modes) {
    HEDDLE_INVARIANT(is_over() && work);
    if (!stack_ && !make_stack())
        return false;
    if (!stack_pointer_)
        stack_pointer_ = first_stack_pointer(stack_ + os::page_bytes() + kStackBytes, enter);
    static_cast<uint64_t*>(stack_pointer_)[kModes] = modes;
    ready_ = nullptr;
    argument_ = argument;
    work_ = work;
    return true;
}

void Fiber::resume() {
    Fiber* const before = current();
    HEDDLE_INVARIANT(before != this && work_ && !ready_);  // is_ready has said that it can go on
    HEDDLE_INVARIANT(static_cast<char*>(stack_pointer_) >= stack_ + os::page_bytes());  // above the guard page
    HEDDLE_INVARIANT(static_cast<char*>(stack_pointer_) < stack_ + os::page_bytes() + kStackBytes);
    set_running(this);
#if defined(HEDDLE_ASAN)
    void* mark = nullptr;
    __sanitizer_start_switch_fiber(&mark, stack_ + os::page_bytes(), kStackBytes);
#elif defined(HEDDLE_TSAN)
    resumer_mark_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(own_mark_, 0);
#endif
    heddle_switch_stack(&resumer_, stack_pointer_);
#if defined(HEDDLE_ASAN)
    __sanitizer_finish_switch_fiber(mark, nullptr, nullptr);
#endif
    set_running(before);
}

void Fiber::switch_back() {
#if defined(HEDDLE_ASAN)
    __sanitizer_start_switch_fiber(&own_mark_, resumer_stack_, resumer_bytes_);
#elif defined(HEDDLE_TSAN)
    __tsan_switch_to_fiber(resumer_mark_, 0);
#endif
    heddle_switch_stack(&stack_pointer_, resumer_);
#if defined(HEDDLE_ASAN)
    __sanitizer_finish_switch_fiber(own_mark_, &resumer_stack_, &resumer_bytes_);
#endif
}

void Fiber::leave(Ready ready, void* condition) {
    HEDDLE_INVARIANT(current() == this && ready);
    ready_ = ready;
    condition_ = condition;
    switch_back();
    HEDDLE_INVARIANT(!ready_);
}

bool Fiber::is_ready() {
    if (ready_ && ready_(condition_))
        ready_ = nullptr;
    return !ready_;
}

// The first function on the stack of every fiber; it never returns.
void Fiber::enter() {
    Fiber* const self = current();
#if defined(HEDDLE_ASAN)
    __sanitizer_finish_switch_fiber(nullptr, &self->resumer_stack_, &self->resumer_bytes_);
#endif
    self->run();
}

void Fiber::run() {
    for (;;) {
        work_(argument_);
        work_ = nullptr;
        switch_back();
    }
}

}  // namespace heddle::progress
