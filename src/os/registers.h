// The registers of a thread that a signal has interrupted, for handlers.
#pragma once

#include <ucontext.h>
#include <cstdint>

namespace heddle::os {

struct Registers {
    uintptr_t instruction;
    uintptr_t stack;
};

// context: a handler's third argument.
inline Registers registers_of(const void* context) {
    const mcontext_t& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
    return {static_cast<uintptr_t>(machine.gregs[REG_RIP]), static_cast<uintptr_t>(machine.gregs[REG_RSP])};
#elif defined(__aarch64__)
    return {machine.pc, machine.sp};
#endif
}

}  // namespace heddle::os
