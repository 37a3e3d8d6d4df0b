// Watching a cache line while the core rests: UMONITOR/UMWAIT (Intel), MONITORX/MWAITX (AMD), WFE/WFET (Arm).
//
// Use, in this order: arm(line); look at the line again; if it has not changed, wait(limit). What changes the line
// after arm ends the wait, also when that comes before wait. Waking early is allowed and usual (interrupts, neighbours
// in the line, longest_ns), so look again; waking late too where there is WFE without WFET, which takes no limit. A
// thread watches one line at a time; who waits for several things has each of them ring one wake-up (sync/wakeup.h),
// watches that line, and looks at all when it has changed.
//
// How deep the core rests follows the limit. Up to 10 us: C0.1, or C0 with MWAITX, which wake fastest. Beyond: C0.2, or
// C1, which wake slower, save more, and leave the sibling hyper-thread more of the core. So a caller that does not know
// passes about as long as it has waited already, and one with time to spare passes what it has.
//
// What has run where: on hardware, none of them. Here UMWAIT is missing, and MWAITX is hidden and swallowed by the
// hypervisor. The tests run the real code with each of these instructions replaced by a trap that does what the manuals
// say (tests/support/monitor_emulation.h); WFE ran under qemu, where it does not rest. How much a wait saves, and how
// long waking takes, is unknown: 10 us is a judgement.
#pragma once

#include "base/choices.h"

#include <cstdint>

namespace heddle::os {

struct Monitor {
    const char* name;
    void (*arm)(const void* line);  // any address: the line that it is in
    void (*wait)(uint64_t limit_ns);
    uint64_t longest_ns = UINT64_MAX;  // after so long a wait ends, whatever its limit
    const char* states = nullptr;  // that the core may rest in, for people; null where the architecture has no names
};

using base::MonitorChoice;

// The backend of that choice; null for none, where the CPU lacks it, and where the kernel forbids it.
const Monitor* find_monitor(MonitorChoice choice);

// What the fake has seen since the process began: tests read it.
struct FakeMonitorCalls {
    uint64_t arms;
    uint64_t waits;
};
FakeMonitorCalls fake_monitor_calls();

}  // namespace heddle::os
