#include "os/monitor_wait.h"

#include "os/pause.h"

#include <algorithm>
#include <atomic>
#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace heddle::os {

namespace {

#if defined(__x86_64__)

// Ticks of the time stamp counter in `ns`, from below: every x86-64 that has these instructions ticks at 1 GHz or more,
// and waking early is allowed.
uint64_t ticks(uint64_t ns) {
    return ns;
}

uint64_t timestamp() {
    uint32_t low, high;
    asm volatile("rdtsc" : "=a"(low), "=d"(high));
    return static_cast<uint64_t>(high) << 32 | low;
}

void umwait_arm(const void* line) {
    asm volatile("umonitor %0" : : "r"(line) : "memory");
}

void umwait_wait(uint64_t limit_ns) {
    const uint64_t deadline = timestamp() + ticks(limit_ns);
    const uint32_t state = 1;  // C0.1: the lighter sleep, with the quicker wake
    asm volatile("umwait %0"
                 :
                 : "r"(state), "a"(static_cast<uint32_t>(deadline)), "d"(static_cast<uint32_t>(deadline >> 32))
                 : "memory", "cc");
}

void mwaitx_arm(const void* line) {
    asm volatile("monitorx" : : "a"(line), "c"(0), "d"(0) : "memory");
}

void mwaitx_wait(uint64_t limit_ns) {
    const uint64_t limit = std::clamp<uint64_t>(ticks(limit_ns), 1, UINT32_MAX);  // 0 would mean no limit
    const uint32_t timer = 2;                                                     // ECX bit 1: EBX holds the limit
    const uint32_t lightest = 0xf0;                                               // EAX 7:4 = 0xf: C0
    asm volatile("mwaitx" : : "a"(lightest), "b"(static_cast<uint32_t>(limit)), "c"(timer) : "memory");
}

bool has_umwait() {
    uint32_t a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (c >> 5 & 1);  // WAITPKG
}

bool has_mwaitx() {
    uint32_t a, b, c, d;
    return __get_cpuid(0x80000001, &a, &b, &c, &d) && (c >> 29 & 1);  // MONITORX
}

constexpr Monitor kUmwait = {"umwait", umwait_arm, umwait_wait};
constexpr Monitor kMwaitx = {"mwaitx", mwaitx_arm, mwaitx_wait};

#elif defined(__aarch64__)

void wfe_arm(const void* line) {
    uint32_t ignored;
    asm volatile("ldxr %w0, [%1]" : "=r"(ignored) : "r"(line) : "memory");
}

// The kernel's event stream ends a WFE after at most 100 us, so the limit needs no WFET; where WFET exists it is kept.
void wfe_wait(uint64_t) {
    asm volatile("wfe" : : : "memory");
}

void wfet_wait(uint64_t limit_ns) {
    uint64_t count, frequency;
    asm volatile("mrs %0, cntvct_el0" : "=r"(count));
    asm volatile("mrs %0, cntfrq_el0" : "=r"(frequency));
    register uint64_t deadline asm("x0") = count + limit_ns * frequency / 1000000000u;
    asm volatile(".inst 0xd5031000" : : "r"(deadline) : "memory");  // wfet x0
}

constexpr Monitor kWfe = {"wfe", wfe_arm, wfe_wait};
constexpr Monitor kWfet = {"wfet", wfe_arm, wfet_wait};

const Monitor* best_wfe() {
    constexpr unsigned long kWfxt = 1ul << 31;  // HWCAP2_WFXT
    return getauxval(AT_HWCAP2) & kWfxt ? &kWfet : &kWfe;
}

#endif

std::atomic<uint64_t> fake_arms, fake_waits;

void fake_arm(const void*) {
    fake_arms.fetch_add(1, std::memory_order_relaxed);
}  // counters only, order nothing

void fake_wait(uint64_t) {
    fake_waits.fetch_add(1, std::memory_order_relaxed);
    pause();
}

constexpr Monitor kFake = {"fake", fake_arm, fake_wait};

}  // namespace

const Monitor* find_monitor(MonitorChoice choice) {
    if (choice == MonitorChoice::kFake)
        return &kFake;
#if defined(__x86_64__)
    if ((choice == MonitorChoice::kAuto || choice == MonitorChoice::kUmwait) && has_umwait())
        return &kUmwait;
    if ((choice == MonitorChoice::kAuto || choice == MonitorChoice::kMwaitx) && has_mwaitx())
        return &kMwaitx;
#elif defined(__aarch64__)
    if (choice == MonitorChoice::kAuto || choice == MonitorChoice::kWfe)
        return best_wfe();
#endif
    return nullptr;
}

FakeMonitorCalls fake_monitor_calls() {
    return {fake_arms.load(std::memory_order_relaxed), fake_waits.load(std::memory_order_relaxed)};
}

#if defined(__x86_64__)
// For the test of the encodings: the machine code of each backend, reachable where the CPU cannot run it.
Monitor encoding_of_umwait() {
    return kUmwait;
}
Monitor encoding_of_mwaitx() {
    return kMwaitx;
}
#endif

}  // namespace heddle::os
