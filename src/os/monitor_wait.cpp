#include "os/monitor_wait.h"

#include "os/monitor_support.h"
#include "os/pause.h"
#include "os/ticks.h"

#include <pthread.h>
#include <algorithm>
#include <atomic>

namespace heddle::os {

namespace {

uint64_t ticks_per_ms;  // written once, by look_at_machine, before any monitor is handed out

uint64_t deadline(uint64_t limit_ns) {
    return deadline_after(ticks_now(), ticks_of_ns(limit_ns, ticks_per_ms));
}

#if defined(__x86_64__)

constexpr uint64_t kLightNs = 10000;  // the limit up to which a core rests lightly (monitor_wait.h)

void umwait_arm(const void* line) {
    asm volatile("umonitor %0" : : "r"(line) : "memory");
}

void umwait_wait(uint64_t limit_ns) {
    const uint64_t end = deadline(limit_ns);
    const uint32_t state = limit_ns <= kLightNs;  // bit 0: C0.1; the other bits must be 0
    asm volatile("umwait %0"
                 :
                 : "r"(state), "a"(static_cast<uint32_t>(end)), "d"(static_cast<uint32_t>(end >> 32))
                 : "memory", "cc");
}

void mwaitx_arm(const void* line) {
    asm volatile("monitorx" : : "a"(line), "c"(0), "d"(0) : "memory");
}

constexpr uint32_t kMwaitxLongest = UINT32_MAX;  // ticks

void mwaitx_wait(uint64_t limit_ns) {
    // EBX: the limit in ticks; 0 would mean no limit.
    const uint64_t limit = std::clamp<uint64_t>(ticks_of_ns(limit_ns, ticks_per_ms), 1, kMwaitxLongest);
    const uint32_t hint = limit_ns <= kLightNs ? 0xf0 : 0;  // EAX 7:4: 0xf is C0, 0 is C1
    const uint32_t timer = 1 << 1;                          // ECX bit 1: there is a limit
    asm volatile("mwaitx" : : "a"(hint), "b"(static_cast<uint32_t>(limit)), "c"(timer) : "memory");
}

Monitor umwait = {"umwait", umwait_arm, umwait_wait};  // written once, like ticks_per_ms
Monitor mwaitx = {"mwaitx", mwaitx_arm, mwaitx_wait, 0, "C0 and C1"};

#elif defined(__aarch64__)

// Loads one byte, which any address allows. Acquire: the caller's next read of the line comes after it.
void wfe_arm(const void* line) {
    uint32_t ignored;
    asm volatile("ldaxrb %w0, [%1]" : "=r"(ignored) : "r"(line) : "memory");
}

// Has no limit of its own: the kernel's event stream ends the wait.
void wfe_wait(uint64_t) {
    asm volatile("wfe" : : : "memory");
}

void wfet_wait(uint64_t limit_ns) {
    register uint64_t end asm("x0") = deadline(limit_ns);
    asm volatile(".inst 0xd5031000" : : "r"(end) : "memory");  // wfet x0; assemblers know the name since Armv8.7
}

constexpr uint64_t kEventStreamNs = 100000;  // the period of Linux's event stream (10 kHz)
constexpr Monitor kWfe = {"wfe", wfe_arm, wfe_wait, kEventStreamNs};
Monitor wfet = {"wfet", wfe_arm, wfet_wait};  // written once, like ticks_per_ms

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

MonitorSupport support;  // written once, like ticks_per_ms

void look_at_machine() {
    support = monitor_support();
    if (!support.umwait && !support.mwaitx && !support.wfet)
        return;
    ticks_per_ms = measure_ticks_per_ms();
#if defined(__x86_64__)
    if (support.umwait_cap_ticks)
        umwait.longest_ns = ns_of_ticks(support.umwait_cap_ticks, ticks_per_ms);
    umwait.states = support.umwait_c02 ? "C0.1 and C0.2" : "C0.1";
    mwaitx.longest_ns = ns_of_ticks(kMwaitxLongest, ticks_per_ms);
#elif defined(__aarch64__)
    if (support.wfe)
        wfet.longest_ns = kEventStreamNs;
#endif
}

}  // namespace

const Monitor* find_monitor(MonitorChoice choice) {
    if (choice == MonitorChoice::kNone)
        return nullptr;
    if (choice == MonitorChoice::kFake)
        return &kFake;
    const bool any = choice == MonitorChoice::kAuto;
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, look_at_machine);
#if defined(__x86_64__)
    if (support.umwait && (any || choice == MonitorChoice::kUmwait))
        return &umwait;
    if (support.mwaitx && (any || choice == MonitorChoice::kMwaitx))
        return &mwaitx;
#elif defined(__aarch64__)
    if (support.wfet && (any || choice == MonitorChoice::kWfe))
        return &wfet;
    if (support.wfe && (any || choice == MonitorChoice::kWfe))
        return &kWfe;
#endif
    return nullptr;
}

FakeMonitorCalls fake_monitor_calls() {
    return {fake_arms.load(std::memory_order_relaxed), fake_waits.load(std::memory_order_relaxed)};
}

}  // namespace heddle::os
