// What its header declares. Locks: this file's definitions come ahead of the C library's for all of the process, and pass
// the call on. System calls: a filter traps each one that does not come from own_syscall, and the handler makes it.
#include "lock_and_syscall_interposer.h"

#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace conformance {

std::atomic<bool> watching_locks;
std::atomic<unsigned> locks_taken;
std::atomic<const char*> last_lock;
constinit thread_local bool watching_calls = false;
std::atomic<unsigned> calls_made;
std::atomic<long> last_call;

namespace {

// The next definition of a function; pthread_cond_ has old versions on x86-64, which dlsym prefers.
template <class Function>
Function* next(const char* name, Function*) {
    void* found = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
    return reinterpret_cast<Function*>(found ? found : dlsym(RTLD_NEXT, name));
}

void note(const char* name) {
    if (!watching_locks.load(std::memory_order_relaxed))
        return;
    locks_taken.fetch_add(1, std::memory_order_relaxed);
    last_lock.store(name, std::memory_order_relaxed);
}

}  // namespace

#define CONFORMANCE_LOCK(name, parameters, arguments)                       \
    extern "C" __attribute__((visibility("default"))) int name parameters { \
        static const auto real = next(#name, &name);                        \
        note(#name);                                                        \
        return real arguments;                                              \
    }
CONFORMANCE_LOCK(pthread_mutex_lock, (pthread_mutex_t * it), (it))
CONFORMANCE_LOCK(pthread_mutex_trylock, (pthread_mutex_t * it), (it))
CONFORMANCE_LOCK(pthread_mutex_timedlock, (pthread_mutex_t * it, const timespec* until), (it, until))
CONFORMANCE_LOCK(pthread_spin_lock, (pthread_spinlock_t * it), (it))
CONFORMANCE_LOCK(pthread_spin_trylock, (pthread_spinlock_t * it), (it))
CONFORMANCE_LOCK(pthread_rwlock_rdlock, (pthread_rwlock_t * it), (it))
CONFORMANCE_LOCK(pthread_rwlock_wrlock, (pthread_rwlock_t * it), (it))
CONFORMANCE_LOCK(pthread_rwlock_tryrdlock, (pthread_rwlock_t * it), (it))
CONFORMANCE_LOCK(pthread_rwlock_trywrlock, (pthread_rwlock_t * it), (it))
CONFORMANCE_LOCK(pthread_cond_wait, (pthread_cond_t * it, pthread_mutex_t* mutex), (it, mutex))
CONFORMANCE_LOCK(pthread_cond_timedwait, (pthread_cond_t * it, pthread_mutex_t* mutex, const timespec* until),
                 (it, mutex, until))
CONFORMANCE_LOCK(pthread_cond_signal, (pthread_cond_t * it), (it))
CONFORMANCE_LOCK(pthread_cond_broadcast, (pthread_cond_t * it), (it))

#if defined(__x86_64__) || defined(__aarch64__)

// The one place that system calls may come from, conformance_syscall_end its end.
extern "C" long conformance_syscall(long number, const long* arguments);
extern "C" const char conformance_syscall_end[];
#ifdef __x86_64__
__asm__(
    ".text\nconformance_syscall:\n"
    "mov %rdi, %rax\nmov %rsi, %r11\n"
    "mov (%r11), %rdi\nmov 8(%r11), %rsi\nmov 16(%r11), %rdx\nmov 24(%r11), %r10\nmov 32(%r11), %r8\nmov 40(%r11), "
    "%r9\n"
    "syscall\nret\n"
    ".globl conformance_syscall_end\nconformance_syscall_end:\n"
    ".type conformance_syscall, @function\n");
#else
__asm__(
    ".text\nconformance_syscall:\n"
    "mov x8, x0\nmov x9, x1\nldp x0, x1, [x9]\nldp x2, x3, [x9, 16]\nldp x4, x5, [x9, 32]\n"
    "svc 0\nret\n"
    ".globl conformance_syscall_end\nconformance_syscall_end:\n"
    ".type conformance_syscall, %function\n");
#endif

namespace {

void make_call(int, siginfo_t* info, void* context) {
    auto& state = static_cast<ucontext_t*>(context)->uc_mcontext;
    if (watching_calls) {
        calls_made.fetch_add(1, std::memory_order_relaxed);
        last_call.store(info->si_syscall, std::memory_order_relaxed);
    }
#ifdef __x86_64__
    const long arguments[] = {static_cast<long>(state.gregs[REG_RDI]), static_cast<long>(state.gregs[REG_RSI]),
                              static_cast<long>(state.gregs[REG_RDX]), static_cast<long>(state.gregs[REG_R10]),
                              static_cast<long>(state.gregs[REG_R8]),  static_cast<long>(state.gregs[REG_R9])};
    state.gregs[REG_RAX] = conformance_syscall(info->si_syscall, arguments);
#else
    long arguments[6];
    for (int i = 0; i < 6; ++i) arguments[i] = static_cast<long>(state.regs[i]);
    state.regs[0] = static_cast<unsigned long long>(conformance_syscall(info->si_syscall, arguments));
#endif
}

}  // namespace

bool install_call_watch() {
    struct sigaction action = {};
    action.sa_sigaction = make_call;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSYS, &action, nullptr);
    const auto begin = reinterpret_cast<uintptr_t>(&conformance_syscall);
    const auto end = reinterpret_cast<uintptr_t>(conformance_syscall_end);
    const auto high = static_cast<uint32_t>(begin >> 32), low = static_cast<uint32_t>(begin);
    constexpr uint32_t kAddress = offsetof(seccomp_data, instruction_pointer);  // little-endian: the low half first
    if (end >> 32 != high)
        return false;
    sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 6, 0),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kAddress + 4),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, high, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kAddress),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, low, 0, 1),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, static_cast<uint32_t>(end), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program = {sizeof filter / sizeof *filter, filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

#else

bool install_call_watch() {
    return false;
}

#endif

}  // namespace conformance
