// Carries out monitor instructions that this machine lacks, so that the code around them runs as it is.
//
// emulate finds them in a backend's machine code, notes what each is, and overwrites its first bytes with an
// instruction that traps. The handler of SIGILL then does what the manuals say, with the operands in the thread's
// registers: it watches the armed line until that changes, the deadline passes, or the kernel's cap or event stream
// ends the wait; sets the flags; and goes on behind the instruction. What the CPU itself would do with the instruction
// plays no part: a hypervisor may swallow it without a trap.
//
// It differs from hardware where a line is written with the value that it has: that ends a wait there, and not here. An
// operand that hardware would fault on, or a wait that nothing would ever end, ends the process with a message.
#pragma once

#include "os/monitor_wait.h"

#include <atomic>
#include <cstdint>

namespace heddle::test {

enum class Instruction { kNone, kUmonitor, kUmwait, kMonitorx, kMwaitx, kLdaxrb, kWfe, kWfet };

struct Decoded {
    Instruction what = Instruction::kNone;
    int bytes = 0;
    int operand = 0;  // number of the register that the instruction names; of LDAXRB the one that holds the address
    int target = 0;   // of LDAXRB: the register that it loads
};

// The monitor instruction at that address, if it is one.
Decoded decode(const unsigned char* at);

// The first one in the machine code from there on, as it was before emulate, or kNone.
Decoded first_instruction(const void* code);

// From here on the instructions of that monitor are carried out by this file, in every thread. Call before any waits.
void emulate(const os::Monitor& monitor);

enum class Ended { kLineChanged, kDeadline, kCap, kNotArmed };

// A wait as it was carried out. Times are in ticks of os/ticks.h.
struct Wait {
    Instruction armed_with = Instruction::kNone, waited_with = Instruction::kNone;
    uintptr_t address = 0;  // as it was armed
    uint64_t state = 0;     // UMWAIT's operand; MWAITX's EAX
    uint64_t options = 0;   // MWAITX's ECX
    uint64_t limit = 0;     // as the instruction got it: EDX:EAX, EBX, Xt
    uint64_t begin = 0, deadline = 0, end = 0;
    Ended ended = Ended::kNotArmed;
    uint64_t flags = 0;  // behind it
};

// Of the calling thread.
struct Waits {
    uint64_t count = 0;
    uint64_t latest_deadline = 0;
    Wait last;
};
Waits& waits_of_this_thread();

extern std::atomic<uint64_t> armed_waits_of_process;

// A wait that lasts so many ticks ends: IA32_UMWAIT_CONTROL, or the event stream. 0: none.
extern std::atomic<uint64_t> cap_ticks;

// What every_monitor.cpp, which stands in for os/monitor_support.cpp, says of this machine's kernel.
constexpr uint32_t kKernelsCapTicks = 100000;

}  // namespace heddle::test
