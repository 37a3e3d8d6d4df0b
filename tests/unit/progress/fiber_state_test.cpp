// What a fiber and who resumes it keep of the processor's state: registers, and the modes of floating-point arithmetic.
#include "unit/progress/fibers.h"

#include <gtest/gtest.h>
#include <cfenv>
#include <cstddef>
#include <cstdint>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace heddle::progress {
namespace {

// --- Registers

#if defined(__x86_64__) || defined(__aarch64__)

constexpr size_t kRegisters = 18;

// Calls function(argument) with seed + i in the i-th of the registers that it must keep, and writes down what they are
// behind. Returns how many there are.
extern "C" size_t heddle_test_call_with_registers(uint64_t* behind, uint64_t seed, void (*function)(void*),
                                                  void* argument);

#if defined(__x86_64__)
asm(R"(
    .text
    .globl heddle_test_call_with_registers
    .type heddle_test_call_with_registers, @function
heddle_test_call_with_registers:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    pushq %rdi
    movq %rsi, %rbp
    leaq 1(%rsi), %rbx
    leaq 2(%rsi), %r12
    leaq 3(%rsi), %r13
    leaq 4(%rsi), %r14
    leaq 5(%rsi), %r15
    movq %rcx, %rdi
    call *%rdx
    popq %rdi
    movq %rbp, (%rdi)
    movq %rbx, 8(%rdi)
    movq %r12, 16(%rdi)
    movq %r13, 24(%rdi)
    movq %r14, 32(%rdi)
    movq %r15, 40(%rdi)
    movl $6, %eax
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size heddle_test_call_with_registers, . - heddle_test_call_with_registers
)");
#else
asm(R"(
    .text
    .globl heddle_test_call_with_registers
    .type heddle_test_call_with_registers, %function
heddle_test_call_with_registers:
    stp x29, x30, [sp, #-176]!
    stp x19, x20, [sp, #16]
    stp x21, x22, [sp, #32]
    stp x23, x24, [sp, #48]
    stp x25, x26, [sp, #64]
    stp x27, x28, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    str x0, [sp, #160]
    mov x19, x1
    add x20, x1, #1
    add x21, x1, #2
    add x22, x1, #3
    add x23, x1, #4
    add x24, x1, #5
    add x25, x1, #6
    add x26, x1, #7
    add x27, x1, #8
    add x28, x1, #9
    add x9, x1, #10
    fmov d8, x9
    add x9, x1, #11
    fmov d9, x9
    add x9, x1, #12
    fmov d10, x9
    add x9, x1, #13
    fmov d11, x9
    add x9, x1, #14
    fmov d12, x9
    add x9, x1, #15
    fmov d13, x9
    add x9, x1, #16
    fmov d14, x9
    add x9, x1, #17
    fmov d15, x9
    mov x0, x3
    blr x2
    ldr x0, [sp, #160]
    stp x19, x20, [x0]
    stp x21, x22, [x0, #16]
    stp x23, x24, [x0, #32]
    stp x25, x26, [x0, #48]
    stp x27, x28, [x0, #64]
    stp d8, d9, [x0, #80]
    stp d10, d11, [x0, #96]
    stp d12, d13, [x0, #112]
    stp d14, d15, [x0, #128]
    mov x0, #18
    ldp x19, x20, [sp, #16]
    ldp x21, x22, [sp, #32]
    ldp x23, x24, [sp, #48]
    ldp x25, x26, [sp, #64]
    ldp x27, x28, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    ldp x29, x30, [sp], #176
    ret
    .size heddle_test_call_with_registers, . - heddle_test_call_with_registers
)");
#endif

template <class Body>
void expect_registers_kept(uint64_t seed, Body body) {
    uint64_t behind[kRegisters] = {};
    const size_t count =
        heddle_test_call_with_registers(behind, seed, [](void* it) { (*static_cast<Body*>(it))(); }, &body);
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(behind[i], seed + i) << "register " << i;
}

TEST(FiberState, ItAndWhoResumesItKeepTheirRegisters) {
    Fiber fiber;
    bool may_go_on = false;
    auto condition = [&] { return may_go_on; };
    auto body = [&] { expect_registers_kept(0xf1be0000, [&] { fiber.wait(condition); }); };
    ASSERT_TRUE(start(fiber, body));
    expect_registers_kept(0xaaaa0000, [&] { fiber.resume(); });
    may_go_on = true;
    ASSERT_TRUE(fiber.is_ready());
    on_another_thread([&] { expect_registers_kept(0xbbbb0000, [&] { fiber.resume(); }); });
    EXPECT_TRUE(fiber.is_over());
}

#endif

// --- Modes of floating-point arithmetic

// 1/3 in the rounding mode that is; not what the compiler works out.
double third() {
    volatile double one = 1, three = 3;
    return one / three;
}

TEST(FiberState, ItAndWhoResumesItKeepTheirRoundingModes) {
    const double nearest = third();
    Fiber fiber;
    bool may_go_on = false;
    auto condition = [&] { return may_go_on; };
    double of_fiber[2] = {};
    auto body = [&] {
        EXPECT_EQ(fegetround(), FE_TONEAREST);
        fesetround(FE_UPWARD);
        of_fiber[0] = third();
        fiber.wait(condition);
        EXPECT_EQ(fegetround(), FE_UPWARD);
        of_fiber[1] = third();
    };
    ASSERT_TRUE(start(fiber, body));
    fiber.resume();
    EXPECT_EQ(fegetround(), FE_TONEAREST);
    EXPECT_EQ(third(), nearest);
    may_go_on = true;
    ASSERT_TRUE(fiber.is_ready());
    on_another_thread([&] {
        fesetround(FE_DOWNWARD);
        fiber.resume();
        EXPECT_EQ(fegetround(), FE_DOWNWARD);
    });
    EXPECT_GT(of_fiber[0], nearest);
    EXPECT_EQ(of_fiber[1], of_fiber[0]);
}

#if defined(__x86_64__)
TEST(FiberState, ItAndWhoResumesItKeepWhetherTheyFlushToZero) {
    constexpr unsigned kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040;
    const auto half_of_the_least = [] {
        volatile float least = 0x1p-126f;
        return least / 2;
    };
    const unsigned before = _mm_getcsr();
    Fiber fiber;
    bool may_go_on = false;
    auto condition = [&] { return may_go_on; };
    auto body = [&] {
        _mm_setcsr(_mm_getcsr() | kFlushToZero | kDenormalsAreZero);
        EXPECT_EQ(half_of_the_least(), 0);
        fiber.wait(condition);
        EXPECT_EQ(_mm_getcsr() & (kFlushToZero | kDenormalsAreZero), kFlushToZero | kDenormalsAreZero);
        EXPECT_EQ(half_of_the_least(), 0);
    };
    ASSERT_TRUE(start(fiber, body));
    fiber.resume();
    EXPECT_EQ(_mm_getcsr() & (kFlushToZero | kDenormalsAreZero), before & (kFlushToZero | kDenormalsAreZero));
    EXPECT_GT(half_of_the_least(), 0);
    may_go_on = true;
    ASSERT_TRUE(fiber.is_ready());
    fiber.resume();
    EXPECT_EQ(_mm_getcsr() & (kFlushToZero | kDenormalsAreZero), before & (kFlushToZero | kDenormalsAreZero));
}
#endif

// Each work begins in the modes of who gives it, whatever the one before it has left behind.
TEST(FiberState, WorkBeginsInTheModesOfWhoStartsIt) {
    Fiber fiber;
    int found = -1;
    auto body = [&] {
        found = fegetround();
        fesetround(FE_TOWARDZERO);
    };
    for (int mode : {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TONEAREST}) {
        fesetround(mode);
        ASSERT_TRUE(start(fiber, body));
        fesetround(FE_TONEAREST);
        on_another_thread([&] { fiber.resume(); });
        EXPECT_EQ(found, mode);
    }
}

}  // namespace
}  // namespace heddle::progress
