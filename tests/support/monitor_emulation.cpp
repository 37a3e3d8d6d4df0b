#include "support/monitor_emulation.h"

#include "os/memfd.h"
#include "os/ticks.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include <cerrno>
#include <cstdlib>
#include <cstring>

// Sanitizers stay out of the handler: it reads lines whose other bytes may belong to anybody.
#define UNSANITIZED __attribute__((no_sanitize("address", "thread", "undefined")))

namespace heddle::test {

std::atomic<uint64_t> armed_waits_of_process{0};
std::atomic<uint64_t> cap_ticks{0};

namespace {

constexpr int kMaxCodeBytes = 1000;  // of a function; sanitizers put much of their own in front
constexpr int kMaxTraps = 32;
constexpr size_t kLineWords = 8;

struct Trap {
    const unsigned char* at = nullptr;
    Decoded was = {};
};
constinit Trap traps[kMaxTraps] = {};  // written by emulate alone, before anybody waits
int n_traps = 0;

// Of the thread; initial-exec, because the handler may not allocate it.
__attribute__((tls_model("initial-exec"))) thread_local Waits waits;
__attribute__((tls_model("initial-exec"))) thread_local uint64_t armed_line[kLineWords];
__attribute__((tls_model("initial-exec"))) thread_local bool armed = false;

[[noreturn]] void die(const char* message) {
    [[maybe_unused]] ssize_t ignored = write(STDERR_FILENO, message, strlen(message));
    abort();
}

const Trap* trap_at(const unsigned char* at) {
    for (int i = 0; i < n_traps; ++i)
        if (traps[i].at == at)
            return &traps[i];
    return nullptr;
}

UNSANITIZED void read_line(uintptr_t address, uint64_t* words) {
    const auto* line = reinterpret_cast<const volatile uint64_t*>(address & ~uintptr_t{63});
    for (size_t i = 0; i < kLineWords; ++i) words[i] = line[i];
}

UNSANITIZED bool line_has_changed() {
    uint64_t now[kLineWords];
    read_line(waits.last.address, now);
    for (size_t i = 0; i < kLineWords; ++i)
        if (now[i] != armed_line[i])
            return true;
    return false;
}

UNSANITIZED void arm(Instruction instruction, uintptr_t address) {
    waits.last = {};
    waits.last.armed_with = instruction;
    waits.last.address = address;
    read_line(address, armed_line);
    armed = true;
}

UNSANITIZED Ended wait_until(uint64_t begin, uint64_t deadline, uint64_t cap) {
    if (!armed)
        return Ended::kNotArmed;
    for (;;) {
        if (line_has_changed())
            return Ended::kLineChanged;
        if (deadline == UINT64_MAX && !cap)
            die("emulated monitor: nothing but a change of the line would end this wait\n");
        const uint64_t now = os::ticks_now();
        if (now >= deadline)
            return Ended::kDeadline;
        if (cap && now - begin >= cap)
            return Ended::kCap;
        syscall(SYS_sched_yield);  // not the function: tests replace that
    }
}

// wait: state, options, limit and begin are set.
UNSANITIZED void carry_out(Instruction instruction, uint64_t deadline, uint64_t cap) {
    Wait& wait = waits.last;
    wait.waited_with = instruction;
    wait.deadline = deadline;
    wait.ended = wait_until(wait.begin, deadline, cap);
    wait.end = os::ticks_now();
    armed = false;
    ++waits.count;
    if (deadline > waits.latest_deadline)
        waits.latest_deadline = deadline;
    if (wait.ended != Ended::kNotArmed)
        armed_waits_of_process.fetch_add(1, std::memory_order_relaxed);  // a counter
}

}  // namespace

#if defined(__x86_64__)

namespace {

constexpr unsigned char kTrap[] = {0x0f, 0x0b};  // ud2
constexpr int kCodeStep = 1;

using Registers = greg_t*;

uint64_t& reg(Registers registers, int number) {
    constexpr int kOrder[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                              REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    return reinterpret_cast<uint64_t&>(registers[kOrder[number]]);
}

UNSANITIZED void umwait(Registers registers, uint32_t state) {
    waits.last.begin = os::ticks_now();
    waits.last.state = state;
    waits.last.limit = static_cast<uint64_t>(static_cast<uint32_t>(registers[REG_RDX])) << 32 |
                       static_cast<uint32_t>(registers[REG_RAX]);
    if (state > 1)
        die("emulated umwait: general protection: a bit above the first is set in the operand\n");
    carry_out(Instruction::kUmwait, waits.last.limit, cap_ticks.load(std::memory_order_relaxed));
    constexpr greg_t kCarry = 1, kStatus = 0x8d5;  // CF; all of OF, SF, ZF, AF, PF, CF
    registers[REG_EFL] = (registers[REG_EFL] & ~kStatus) | (waits.last.ended == Ended::kCap ? kCarry : 0);
    waits.last.flags = static_cast<uint64_t>(registers[REG_EFL]);
}

UNSANITIZED void mwaitx(Registers registers) {
    waits.last.begin = os::ticks_now();
    waits.last.state = static_cast<uint32_t>(registers[REG_RAX]);
    waits.last.options = static_cast<uint32_t>(registers[REG_RCX]);
    waits.last.limit = static_cast<uint32_t>(registers[REG_RBX]);
    if (waits.last.options > 3)
        die("emulated mwaitx: general protection: a bit above the second is set in ECX\n");
    const bool timed = (waits.last.options & 2) && waits.last.limit != 0;
    carry_out(Instruction::kMwaitx, timed ? waits.last.begin + waits.last.limit : UINT64_MAX, 0);
}

UNSANITIZED void execute(const Decoded& instruction, ucontext_t* context) {
    Registers registers = context->uc_mcontext.gregs;
    switch (instruction.what) {
        case Instruction::kUmonitor:
            arm(Instruction::kUmonitor, reg(registers, instruction.operand));
            break;
        case Instruction::kUmwait:
            umwait(registers, static_cast<uint32_t>(reg(registers, instruction.operand)));
            break;
        case Instruction::kMonitorx:
            if (static_cast<uint32_t>(registers[REG_RCX]) != 0)
                die("emulated monitorx: general protection: ECX is not 0\n");
            arm(Instruction::kMonitorx, static_cast<uintptr_t>(registers[REG_RAX]));
            break;
        default:
            mwaitx(registers);
    }
    registers[REG_RIP] += instruction.bytes;
}

const unsigned char* counter_of(const ucontext_t* context) {
    return reinterpret_cast<const unsigned char*>(context->uc_mcontext.gregs[REG_RIP]);
}

}  // namespace

Decoded decode(const unsigned char* at) {
    if (at[0] == 0x0f && at[1] == 0x01 && at[2] == 0xfa)
        return {Instruction::kMonitorx, 3};
    if (at[0] == 0x0f && at[1] == 0x01 && at[2] == 0xfb)
        return {Instruction::kMwaitx, 3};
    if (at[0] != 0xf3 && at[0] != 0xf2)
        return {};
    const bool rex = (at[1] & 0xf0) == 0x40;
    const unsigned char* opcode = at + 1 + rex;
    const bool register_six = (opcode[2] & 0xf8) == 0xf0;  // ModRM: register operand, /6
    if (opcode[0] != 0x0f || opcode[1] != 0xae || !register_six)
        return {};
    const int high = rex && (at[1] & 1) ? 8 : 0;  // REX.B
    return {at[0] == 0xf3 ? Instruction::kUmonitor : Instruction::kUmwait, 4 + rex, (opcode[2] & 7) + high};
}

#elif defined(__aarch64__)

namespace {

constexpr unsigned char kTrap[] = {0, 0, 0, 0};  // udf #0
constexpr int kCodeStep = 4;

UNSANITIZED void execute(const Decoded& instruction, ucontext_t* context) {
    auto& registers = context->uc_mcontext.regs;
    const uint64_t cap = cap_ticks.load(std::memory_order_relaxed);
    switch (instruction.what) {
        case Instruction::kLdaxrb:
            arm(Instruction::kLdaxrb, registers[instruction.operand]);
            registers[instruction.target] = *reinterpret_cast<const volatile unsigned char*>(waits.last.address);
            break;
        case Instruction::kWfe:
            waits.last.begin = os::ticks_now();
            carry_out(Instruction::kWfe, UINT64_MAX, cap);
            break;
        default:
            waits.last.begin = os::ticks_now();
            waits.last.limit = registers[instruction.operand];
            carry_out(Instruction::kWfet, waits.last.limit, cap);
    }
    context->uc_mcontext.pc += 4;
}

const unsigned char* counter_of(const ucontext_t* context) {
    return reinterpret_cast<const unsigned char*>(context->uc_mcontext.pc);
}

}  // namespace

Decoded decode(const unsigned char* at) {
    uint32_t word;
    memcpy(&word, at, sizeof word);
    const int low = word & 31;
    if ((word & 0xfffffc00) == 0x085ffc00)
        return {Instruction::kLdaxrb, 4, static_cast<int>(word >> 5 & 31), low};
    if (word == 0xd503205f)
        return {Instruction::kWfe, 4};
    if ((word & 0xffffffe0) == 0xd5031000)
        return {Instruction::kWfet, 4, low};
    return {};
}

#endif

namespace {

UNSANITIZED void on_trap(int, siginfo_t*, void* raw) {
    const int saved_errno = errno;
    auto* context = static_cast<ucontext_t*>(raw);
    const Trap* trap = trap_at(counter_of(context));
    if (!trap)
        die("emulated monitor: SIGILL from something else\n");
    execute(trap->was, context);
    errno = saved_errno;
}

void set_trap(unsigned char* at, const Decoded& was) {
    if (n_traps == kMaxTraps)
        die("emulated monitor: too many instructions\n");
    traps[n_traps++] = {at, was};
    const uintptr_t begin = reinterpret_cast<uintptr_t>(at) & ~(os::page_bytes() - 1);
    const size_t bytes = reinterpret_cast<uintptr_t>(at + sizeof kTrap) - begin;
    if (mprotect(reinterpret_cast<void*>(begin), bytes, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
        die("emulated monitor: this machine does not let code be changed\n");
    memcpy(at, kTrap, sizeof kTrap);
    mprotect(reinterpret_cast<void*>(begin), bytes, PROT_READ | PROT_EXEC);
    __builtin___clear_cache(reinterpret_cast<char*>(at), reinterpret_cast<char*>(at + sizeof kTrap));
}

}  // namespace

Decoded first_instruction(const void* code) {
    const auto* first = static_cast<const unsigned char*>(code);
    for (int i = 0; i < kMaxCodeBytes; i += kCodeStep) {
        const Trap* trap = trap_at(first + i);
        const Decoded found = trap ? trap->was : decode(first + i);
        if (found.what != Instruction::kNone)
            return found;
    }
    return {};
}

void emulate(const os::Monitor& monitor) {
    struct sigaction action = {};
    action.sa_sigaction = on_trap;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGILL, &action, nullptr);
    const void* functions[] = {reinterpret_cast<const void*>(monitor.arm), reinterpret_cast<const void*>(monitor.wait)};
    for (const void* function : functions) {
        if (first_instruction(function).what == Instruction::kNone)
            die("emulated monitor: no monitor instruction in its code\n");
        auto* code = static_cast<unsigned char*>(const_cast<void*>(function));
        for (int i = 0; i < kMaxCodeBytes; i += kCodeStep) {
            const Decoded found = decode(code + i);
            if (found.what != Instruction::kNone)
                set_trap(code + i, found);
        }
    }
}

Waits& waits_of_this_thread() {
    return waits;
}

}  // namespace heddle::test
