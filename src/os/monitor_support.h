// Monitor support: which monitor instructions (os/monitor_wait.h) this CPU has and the kernel lets programs use, and
// the kernel's limits. Cost: a few CPUIDs, each up to 50 us under a hypervisor. Threads: any.
#pragma once

#include <cstdint>

namespace heddle::os {

struct MonitorSupport {
    bool umwait = false, mwaitx = false;  // x86-64
    bool wfe = false, wfet = false;       // aarch64
    // The kernel's limits of UMWAIT: its longest wait in ticks of the time stamp counter (0: none), and whether it may
    // use C0.2.
    uint32_t umwait_cap_ticks = 0;
    bool umwait_c02 = true;
};

MonitorSupport monitor_support();

#if defined(__x86_64__)
// True when this process may read the time stamp counter. Where it may not (prctl, sandboxes), UMWAIT faults, too.
bool counter_is_allowed();
#endif

// Reads the kernel's limits of UMWAIT from the files of that folder. Unchanged where there are none: kernels before 5.4
// set no limits.
void read_umwait_control(const char* folder, MonitorSupport* support);

}  // namespace heddle::os
