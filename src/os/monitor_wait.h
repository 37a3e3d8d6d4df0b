// Watching a cache line while the core rests: UMONITOR/UMWAIT (Intel), MONITORX/MWAITX (AMD), WFE/WFET (Arm).
//
// Use, in this order: arm(line); look at the line again; if it has not changed, wait(limit). Waking early is allowed
// and usual (interrupts, the limits of the operating system: Linux caps UMWAIT at 100 us by default), so look again.
// Whether the instruction really rests the core has been seen on none of our machines: each lacks all three. Their
// encodings are tested (tests/unit/os), and the policy above them with the fake.
#pragma once

#include <cstdint>

namespace heddle::os {

struct Monitor {
    const char* name;
    void (*arm)(const void* line);
    void (*wait)(uint64_t limit_ns);
};

enum class MonitorChoice : int { kAuto, kNone, kUmwait, kMwaitx, kWfe, kFake };  // as in settings.def

// The backend of that choice; null for none and where the CPU lacks it.
const Monitor* find_monitor(MonitorChoice choice);

// What the fake has seen since the process began: tests read it.
struct FakeMonitorCalls {
    uint64_t arms;
    uint64_t waits;
};
FakeMonitorCalls fake_monitor_calls();

}  // namespace heddle::os
