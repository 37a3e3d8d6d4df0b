#include "runtime/crash.h"

#include "base/error.h"
#include "base/place.h"
#include "base/settings.h"
#include "base/source_line.h"
#include "memory/symmetric.h"
#include "os/clock.h"
#include "os/registers.h"
#include "os/thread_id.h"

#include <heddle/abi.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <ctime>

namespace heddle::runtime {

namespace {

constexpr struct {
    int number;
    const char* name;
} kSignals[] = {{SIGSEGV, "Segmentation fault"},
                {SIGBUS, "Bus error"},
                {SIGFPE, "Floating point exception"},
                {SIGILL, "Illegal instruction"}};
constexpr size_t kStackBytes = 128 * 1024;  // of the handler: for the unwinder's tables and the messages
// An address at most this far behind a region is reported relative to that region.
constexpr size_t kNearBytes = 1 << 16;
constexpr int kPatienceS = 20;  // seconds for the report, which may wait for a lock that the crashed thread holds

pid_t owner = 0;                  // the process that has installed the handlers; a fork's child inherits them
std::atomic<pid_t> reporter = 0;  // the thread that reports; other crashing threads wait

const char* name_of(int signal) {
    for (const auto& one : kSignals)
        if (one.number == signal)
            return one.name;
    return "";
}

using os::Registers;

// Writes a part of the message at once: the next part may crash or hang.
__attribute__((format(printf, 1, 2))) void say(const char* format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    [[maybe_unused]] ssize_t written =
        write(STDERR_FILENO, text, std::min(static_cast<size_t>(length), sizeof text - 1));
}

// Reports an address in or shortly behind a region of a PE, mapped at base in this PE; false when it is not.
bool say_region(const char* what, int pe, uintptr_t address, const char* base, size_t bytes) {
    const uintptr_t offset = address - reinterpret_cast<uintptr_t>(base);
    if (!base || bytes == 0 || offset >= bytes + kNearBytes)
        return false;
    if (offset < bytes)
        say(", byte %zu of the %s of PE %d", static_cast<size_t>(offset), what, pe);
    else
        say(", %zu bytes behind the end of the %s of PE %d", static_cast<size_t>(offset - bytes), what, pe);
    return true;
}

bool say_symmetric(uintptr_t address) {
    const memory::Symmetric* const symmetric = memory::symmetric;
    if (!symmetric)
        return false;
    for (int pe = 0; pe < symmetric->n_pes; ++pe) {
        const heddle_peer& peer = symmetric->peers[pe];
        if (say_region("symmetric heap", pe, address, peer.heap, peer.heap_size) ||
            say_region("static data", pe, address, peer.data, peer.data_size))
            return true;
    }
    return false;
}

void say_address(int signal, const siginfo_t& info, const Registers& registers) {
    const auto address = reinterpret_cast<uintptr_t>(info.si_addr);
    if (info.si_code <= 0) {
        say("sent by process %d", static_cast<int>(info.si_pid));
    } else if (signal == SIGFPE || signal == SIGILL) {
        say("%s", info.si_code == FPE_INTDIV && signal == SIGFPE ? "a division by zero"
                  : signal == SIGFPE                             ? "an arithmetic error"
                                     : "an instruction that this CPU lacks, or a trap of the compiler's");
    } else if (info.si_code == SI_KERNEL) {
        say("an address that cannot be one");  // not canonical: the CPU does not report the address
    } else {
        say("address %p", info.si_addr);
        if (address < kNearBytes)
            say(", of a null pointer");
        else if (address - (registers.stack - kNearBytes) < 2 * kNearBytes)
            say(", where the stack ends: an overflow of the stack");
        else if (!say_symmetric(address) && signal == SIGBUS)
            say(", where no memory is left, or behind the end of a mapped file");
    }
}

// Reports the place of the crash; for a crash in a library also where the program called it. May wait for the loader's
// locks.
void say_place(const Registers& registers) {
    char text[512] = "", with_lines[1024];
    size_t used = 0;
    const base::Place place = {registers.instruction, false};
    base::Module module;
    if (base::find_module(place.address, &module)) {
        used += static_cast<size_t>(snprintf(text, sizeof text, "; at %s", base::describe(place).data()));
        if (!module.is_executable()) {
            const base::PlaceText caller = base::describe(base::find_caller_of(place.address));
            if (caller[0] != '\0')
                snprintf(text + used, sizeof text - used, ", called at %s", caller.data());
        }
    }
    base::add_source_lines(text, with_lines, sizeof with_lines);
    say("%s\n", with_lines);
}

// Makes the signal end the process, now or, with a timer, when the report takes too long.
void restore(int signal) {
    struct sigaction standard = {};
    standard.sa_handler = SIG_DFL;
    sigaction(signal, &standard, nullptr);
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, signal);
    pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
    sigevent when_late = {};
    when_late.sigev_notify = SIGEV_SIGNAL;
    when_late.sigev_signo = signal;
    const itimerspec patience = {{0, 0}, {kPatienceS, 0}};
    int timer = 0;  // a timer of the kernel
    if (syscall(SYS_timer_create, CLOCK_MONOTONIC, &when_late, &timer) == 0)
        syscall(SYS_timer_settime, timer, 0, &patience, nullptr);
}

// Sends the signal again as it came. It is delivered when the handler returns, so that a core shows the crash's place.
void send_again(int signal, siginfo_t* info) {
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, signal);
    pthread_sigmask(SIG_BLOCK, &one, nullptr);
    if (syscall(SYS_rt_tgsigqueueinfo, getpid(), os::thread_id(), signal, info) != 0)
        syscall(SYS_tgkill, getpid(), os::thread_id(), signal);
}

void crashed(int signal, siginfo_t* info, void* context) {
    const int error = errno;
    pid_t nobody = 0;
    // Relaxed: only the swap matters.
    const bool is_first = reporter.compare_exchange_strong(nobody, os::thread_id(), std::memory_order_relaxed);
    if (!is_first && nobody != os::thread_id())
        os::sleep_ns(uint64_t{kPatienceS} * 1000000000);  // the first thread's signal ends this thread, too
    const Registers registers = os::registers_of(context);
    if (is_first && owner == getpid()) {
        say("heddle [pe %d] signal %d (%s): ", base::message_pe, signal, name_of(signal));
        say_address(signal, *info, registers);
        restore(signal);
        say_place(registers);
    } else {
        restore(signal);
    }
    send_again(signal, info);
    errno = error;
}

// Gives the calling thread a stack for handlers; once in a process.
void provide_stack() {
    stack_t now = {};
    if (sigaltstack(nullptr, &now) != 0 || (now.ss_flags & SS_DISABLE) == 0)
        return;
    void* const memory = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return;
    const stack_t stack = {memory, 0, kStackBytes};
    if (sigaltstack(&stack, nullptr) != 0)
        munmap(memory, kStackBytes);
}

}  // namespace

void report_crashes() {
    static std::atomic<bool> done = false;  // of the process, also with PEs as threads
    if (!base::settings.crash_report || done.exchange(true, std::memory_order_relaxed))
        return;
    struct sigaction ours = {};
    ours.sa_sigaction = crashed;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (const auto& signal : kSignals) sigaddset(&ours.sa_mask, signal.number);
    owner = getpid();
    bool any = false;
    for (const auto& signal : kSignals) {
        struct sigaction theirs;
        if (sigaction(signal.number, nullptr, &theirs) == 0 && theirs.sa_handler == SIG_DFL)
            any |= sigaction(signal.number, &ours, nullptr) == 0;
    }
    if (any)
        provide_stack();
}

}  // namespace heddle::runtime
