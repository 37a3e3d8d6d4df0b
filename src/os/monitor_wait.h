// Monitor wait: watching a cache line while the core rests, with UMONITOR/UMWAIT (Intel), MONITORX/MWAITX (AMD),
// WFE/WFET (Arm).
//
// Use, in this order: arm(line); read the line again; if it has not changed, wait(limit). A change of the line after
// arm ends the wait, even if it precedes wait. Waking early is allowed and usual (interrupts, neighbours in the line,
// longest_ns), so read the line again. WFE without WFET takes no limit and may wake late. A thread watches one line at
// a time: one that waits for several things watches its PE's wake-up (sync/wakeup.h), and checks all of them when that
// changes.
//
// The limit decides how deeply the core rests. Up to 10 us: C0.1, or C0 with MWAITX, which wake fastest. Beyond: C0.2,
// or C1, which save more power and leave the sibling hyper-thread more of the core. A caller that does not know its
// time passes about as long as it has waited already.
//
// Run on hardware: none of these instructions. UMWAIT is missing on the machines at hand, and their hypervisor hides
// MWAITX. The tests run the real code with each instruction replaced by a trap that does what the manuals say
// (tests/support/monitor_emulation.h). WFE ran under qemu, where it does not rest. How much a wait saves, and how long
// waking takes, is unknown: 10 us is a judgement.
#pragma once

#include "base/choices.h"

#include <cstdint>

namespace heddle::os {

struct Monitor {
    const char* name;
    void (*arm)(const void* line);  // any address in the line
    void (*wait)(uint64_t limit_ns);
    uint64_t longest_ns = UINT64_MAX;  // a wait ends after this time, whatever its limit
    // States in which the core may rest, for messages; null where the architecture names none.
    const char* states = nullptr;
};

using base::MonitorChoice;

// The backend of that choice; null for kNone, and where the CPU lacks it or the kernel forbids it.
const Monitor* find_monitor(MonitorChoice choice);

// The calls of the fake backend since the process began; for tests.
struct FakeMonitorCalls {
    uint64_t arms;
    uint64_t waits;
};
FakeMonitorCalls fake_monitor_calls();

}  // namespace heddle::os
